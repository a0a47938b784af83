package term

import (
	"encoding/json"
	"fmt"
	"io"

	template "github.com/DataDog/datadog-agent/pkg/template/text"
	"github.com/spf13/pflag"

	"github.com/drover-project/drover"
)

// Output is how a command shows what it found: a table for people, or JSON or a template for programs. Templates read fields; they
// cannot call methods of Go's types.
type Output struct {
	JSON     bool
	Template string
	Verbose  bool
}

// Bind adds the flags.
func (o *Output) Bind(f *pflag.FlagSet) {
	f.BoolVar(&o.JSON, "json", false, "print JSON")
	f.StringVarP(&o.Template, "template", "t", "", "print with this Go template, as in -t '{{range .}}{{.ID}} {{end}}'")
	f.BoolVar(&o.Verbose, "verbose", false, "whole ids")
}

// Data prints v for a program, if that was asked for. done is false if it was not, and the caller prints for people.
// Errors: Invalid for a wrong template, or both flags at once; those of writing.
func (o *Output) Data(w io.Writer, v any) (done bool, err error) {
	switch {
	case o.JSON && o.Template != "":
		return true, drover.Errorf(drover.Invalid, "-json and -t cannot be given together")
	case o.JSON:
		return true, PrintJSON(w, v)
	case o.Template != "":
		t, err := template.New("-t").Funcs(template.FuncMap{"json": jsonText}).Parse(o.Template)
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

// ID shortens an id for people.
func (o *Output) ID(id string) string {
	if o.Verbose {
		return id
	}
	return ShortID(id)
}

// ShortID returns the first block (8 characters) of a UUID, as Nomad shows it. Any other id, such as a job's, stays
// whole.
func ShortID(id string) string {
	if len(id) == 36 {
		return id[:8]
	}
	return id
}

// jsonText is the function "json" of templates, for parts that have no text of their own, such as lists and maps.
func jsonText(v any) (string, error) {
	text, err := json.Marshal(v)
	return string(text), err
}

// PrintJSON prints v as JSON, indented by four blanks as Nomad does, and with <, > and & as they are.
func PrintJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "    ")
	return e.Encode(v)
}
