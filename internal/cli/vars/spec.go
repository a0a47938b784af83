package vars

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/secrets"
)

// The examples that "var init" writes.
const (
	exampleHCL = `# A variable. Write it: drover var put @spec.nv.hcl

path = "path/to/variable"

# namespace = "default"

# With its index, it replaces that very version: drover var get shows it as Check Index.
# modify_index = 0

items {
  key1 = "value 1"
  key2 = "value 2"
}
`
	exampleJSON = `{
  "Namespace": "default",
  "Path": "path/to/variable",
  "Items": {
    "key1": "value 1",
    "key2": "value 2"
  }
}
`
)

// file is a variable in HCL.
type file struct {
	Namespace   string     `hcl:"namespace,optional"`
	Path        string     `hcl:"path"`
	ModifyIndex uint64     `hcl:"modify_index,optional"`
	Items       *term.Free `hcl:"items,block"`
}

// parse reads a variable of a file; format is hcl, json, or "" for what the file's name or its first character says. Errors: Invalid,
// without anything of the text: it may be a secret.
func parse(name string, text []byte, format string) (*secrets.Variable, error) {
	if format == "" {
		switch {
		case strings.HasSuffix(name, ".hcl"):
			format = "hcl"
		case strings.HasSuffix(name, ".json"), bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")):
			format = "json"
		default:
			format = "hcl"
		}
	}
	v := &secrets.Variable{}
	switch format {
	case "json":
		if err := json.Unmarshal(text, v); err != nil {
			return nil, drover.Errorf(drover.Invalid, "%s: it is no variable in JSON", name)
		}
		return v, nil
	case "hcl":
		return parseHCL(name, text)
	}
	return nil, drover.Errorf(drover.Invalid, `-in: want hcl or json, got %q`, format)
}

func parseHCL(name string, text []byte) (*secrets.Variable, error) {
	var f file
	parsed, diags := hclparse.NewParser().ParseHCL(text, name)
	if !diags.HasErrors() {
		diags = gohcl.DecodeBody(parsed.Body, nil, &f)
	}
	var items map[string]string
	if !diags.HasErrors() {
		items, diags = f.Items.Values(nil)
	}
	for _, d := range diags {
		if d.Severity != hcl.DiagError {
			continue
		}
		at := ""
		if d.Subject != nil {
			at = fmt.Sprintf("line %d, column %d: ", d.Subject.Start.Line, d.Subject.Start.Column)
		}
		return nil, drover.Errorf(drover.Invalid, "%s: it is no variable in HCL: %s%s (see: drover var init)", name, at, d.Summary)
	}
	return &secrets.Variable{
		VariableMetadata: secrets.VariableMetadata{Namespace: f.Namespace, Path: f.Path, ModifyIndex: f.ModifyIndex}, Items: items,
	}, nil
}

// initCommand is "drover var init". It needs no agent, and refuses to overwrite a file.
func initCommand(app *term.App) *cobra.Command {
	var format string
	var quiet bool
	run := func(_ context.Context, app *term.App, args []string) error {
		text, name := exampleHCL, "spec.nv.hcl"
		switch format {
		case "hcl":
		case "json":
			text, name = exampleJSON, "spec.nv.json"
		default:
			return drover.Errorf(drover.Invalid, "-out: want hcl or json, got %q", format)
		}
		if len(args) > 0 {
			name = args[0]
		}
		if err := term.WriteNew(name, text); err != nil || quiet {
			return err
		}
		_, err := fmt.Fprintf(app.Out, "Wrote %s. Store it with: drover var put @%[1]s\n", name)
		return err
	}
	c := term.Command(app, "init [FILE]", "Write an example of a variable's file", 0, 1, run)
	c.Flags().StringVar(&format, "out", "hcl", "hcl or json")
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "print nothing")
	return c
}
