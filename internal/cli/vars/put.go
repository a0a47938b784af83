package vars

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/secrets"
)

// putCommand is "drover var put".
func putCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	var check, format string
	var force bool
	run := func(ctx context.Context, c *api.Client, args []string) error {
		if force && check != "" {
			return drover.Errorf(drover.Invalid, "-force and -check-index: give one of the two")
		}
		v, err := asked(ctx, app, args, format)
		if err != nil {
			return err
		}
		q := url.Values{}
		switch {
		case force:
		case check != "":
			q.Set("cas", check)
		default:
			q.Set("cas", fmt.Sprint(v.ModifyIndex)) // 0: it must be new
		}
		if v.Namespace != "" {
			q.Set("namespace", v.Namespace)
		}
		var stored secrets.Variable
		if err := c.Put(ctx, varPath(v.Path), q, v, &stored); err != nil {
			return conflict(err)
		}
		if done, err := o.Data(app.Out, &stored); done {
			return err
		}
		_, err = fmt.Fprintf(app.Out, "Created or updated variable %q with modify index %d\n", stored.Path, stored.ModifyIndex)
		return err
	}
	c := term.NomadCommand(app, "put PATH [KEY=VALUE...] | @FILE [KEY=VALUE...] | -", "Write a variable", 1, 10_000, run)
	term.Describe(c, `Writes a variable, which must be new unless -check-index or -force says otherwise. A value that begins with @ is read
from that file, so that it stands in no list of processes; \@ is an @. @FILE, or - for stdin, is a variable as JSON, as "var get -json"
prints it, or as HCL, as "var init" writes it: with its ModifyIndex it replaces that very one.`, `drover var put @db.nv.hcl
drover var put nomad/jobs/web user=app password=@password.txt
drover var get -json nomad/jobs/web > web.json; drover var put @web.json password=@new.txt
drover var put -force nomad/jobs/web password=@new.txt user=app`)
	c.Flags().StringVar(&check, "check-index", "", "only if this is the variable's modify index; 0: only if there is none")
	c.Flags().BoolVar(&force, "force", false, "whatever there is")
	c.Flags().StringVar(&format, "in", "", "format of a file or of stdin: hcl or json; default: as its name ends or its text begins")
	o.Bind(c.Flags())
	return c
}

// asked is the variable that the arguments describe.
func asked(ctx context.Context, app *term.App, args []string, format string) (*secrets.Variable, error) {
	v := &secrets.Variable{Items: map[string]string{}}
	file, isFile := strings.CutPrefix(args[0], "@")
	if isFile || args[0] == "-" {
		text, err := app.ReadInput(ctx, file)
		if err != nil {
			return nil, err
		}
		if v, err = parse(args[0], text, format); err != nil {
			return nil, err
		}
		v.Lock = nil
	} else {
		v.Path = strings.Trim(args[0], " /")
	}
	if v.Items == nil {
		v.Items = map[string]string{}
	}
	for _, pair := range args[1:] {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, drover.Errorf(drover.Invalid, "an item is KEY=VALUE: one of the arguments is not")
		}
		if name, ok := strings.CutPrefix(value, "@"); ok {
			text, err := app.ReadInput(ctx, name)
			if err != nil {
				return nil, err
			}
			value = string(text)
		} else if strings.HasPrefix(value, `\@`) {
			value = value[1:]
		}
		v.Items[key] = value
	}
	if v.Path == "" {
		return nil, drover.Errorf(drover.Invalid, "the file has no Path")
	}
	return v, nil
}
