package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"text/template"

	"github.com/spf13/pflag"

	"github.com/drover-project/drover"
)

// output is how a command shows what it found: a table for people, or JSON or a template for programs.
type output struct {
	json     bool
	template string
	verbose  bool
}

func (o *output) bind(f *pflag.FlagSet) {
	f.BoolVar(&o.json, "json", false, "print JSON")
	f.StringVarP(&o.template, "template", "t", "", "print with this Go template, as in -t '{{range .}}{{.ID}} {{end}}'")
	f.BoolVar(&o.verbose, "verbose", false, "whole ids")
}

// data prints v for a program, if that was asked for.
func (o *output) data(w io.Writer, v any) (done bool, err error) {
	switch {
	case o.json && o.template != "":
		return true, drover.Errorf(drover.Invalid, "-json and -t cannot be given together")
	case o.json:
		return true, printJSON(w, v)
	case o.template != "":
		t, err := template.New("-t").Funcs(template.FuncMap{"json": jsonText}).Parse(o.template)
		if err != nil {
			return true, drover.Errorf(drover.Invalid, "the template: %w", err)
		}
		if err := t.Execute(w, v); err != nil {
			return true, drover.Errorf(drover.Invalid, "the template: %w", err)
		}
		_, err = fmt.Fprintln(w)
		return true, err
	}
	return false, nil
}

// id shortens an id for people.
func (o *output) id(id string) string {
	if o.verbose {
		return id
	}
	return short(id)
}

// short is the first block of an id.
func short(id string) string {
	if len(id) == 36 {
		return id[:8]
	}
	return id
}

func jsonText(v any) (string, error) {
	text, err := json.Marshal(v)
	return string(text), err
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "    ")
	return e.Encode(v)
}
