package job

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/term"
)

// format is one run of "drover fmt".
type format struct {
	app                           *term.App
	check, list, write, recursive bool

	changed int // files that were not formatted
}

// FormatCommand is "drover fmt". It needs no agent, and formats everything that is HCL: jobs, pools, configurations.
func FormatCommand(app *term.App) *cobra.Command {
	var flags format
	c := term.Command(app, "fmt [FILE|FOLDER|-]…", "Format job files, and others of HCL", 0, -1,
		func(ctx context.Context, app *term.App, args []string) error {
			f := flags
			f.app = app
			return f.run(ctx, args)
		})
	term.Describe(c, `
Formats files in place, and prints the names of those that it changed. Of folders (this one if none is named) it takes the files
whose names end with .nomad or .hcl; - is stdin, which is printed. Exit codes: 0 done, 1 -check found some, 2 a file is no HCL.`,
		`drover fmt
drover fmt -check -recursive jobs
drover fmt - < web.nomad.hcl`)
	fl := c.Flags()
	fl.BoolVar(&flags.check, "check", false, "change nothing; exit with 1 if a file is not formatted")
	fl.BoolVar(&flags.list, "list", true, "print the names of files that are not formatted")
	fl.BoolVar(&flags.write, "write", true, "change the files; without it they are only listed")
	fl.BoolVar(&flags.recursive, "recursive", false, "folders in folders too")
	return c
}

// run formats what args name. Errors: Invalid for files that cannot be read or are no HCL; an exit code for -check.
func (f *format) run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		args = []string{"."}
	}
	for _, path := range args {
		if err := f.path(ctx, path); err != nil {
			return err
		}
	}
	if f.check && f.changed > 0 {
		return &term.ExitError{Code: term.ExitFailure}
	}
	return nil
}

// path formats a file, stdin, or what is in a folder.
func (f *format) path(ctx context.Context, path string) error {
	if path == "-" {
		return f.file(ctx, path)
	}
	about, err := os.Stat(path)
	if err != nil {
		return drover.Errorf(drover.Invalid, "%w", err)
	}
	if !about.IsDir() {
		return f.file(ctx, path)
	}
	return filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return drover.Errorf(drover.Invalid, "%w", err)
		case entry.IsDir() && name != path && !f.recursive:
			return fs.SkipDir
		case entry.Type().IsRegular() && (strings.HasSuffix(name, ".nomad") || strings.HasSuffix(name, ".hcl")):
			return f.file(ctx, name)
		}
		return nil
	})
}

// file formats one file. What is no HCL is left as it is.
func (f *format) file(ctx context.Context, path string) error {
	text, err := f.app.ReadInput(ctx, path)
	if err != nil {
		return err
	}
	if _, diags := hclsyntax.ParseConfig(text, path, hcl.InitialPos); diags.HasErrors() {
		return term.Diagnosed(diags)
	}
	formatted := hclwrite.Format(text)
	same := bytes.Equal(text, formatted)
	if !same {
		f.changed++
	}
	switch {
	case path == "-":
		if f.check {
			return nil
		}
		_, err = f.app.Out.Write(formatted)
		return err
	case same:
		return nil
	case f.list:
		fmt.Fprintln(f.app.Out, path)
	}
	if !f.write || f.check {
		return nil
	}
	return os.WriteFile(path, formatted, 0o644) // the file is there, and keeps its mode
}
