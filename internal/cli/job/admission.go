package job

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/term"
)

// AdmissionTestCommand is "drover admission test".
func AdmissionTestCommand(app *term.App) *cobra.Command {
	f, o := &file{}, &term.Output{}
	run := func(ctx context.Context, app *term.App, args []string) error {
		job, _, err := f.read(ctx, app, args[0])
		if err != nil {
			return err
		}
		c, err := app.Nomad()
		if err != nil {
			return err
		}
		var answer struct{ Verdicts []drover.AdmissionVerdict }
		if err := c.Put(ctx, "/v1/admission/test", nil, map[string]any{"Job": job}, &answer); err != nil {
			return err
		}
		rows, refused := [][]string{}, map[string]bool{}
		for _, v := range answer.Verdicts {
			rows = append(rows, []string{v.Rule, v.Level, v.Group + "/" + v.Task, v.Message, v.Reason})
			if v.Level == drover.AdmissionEnforce {
				refused[v.Rule] = true
			}
		}
		done, err := o.Data(app.Out, answer.Verdicts)
		if !done && err == nil {
			err = term.Table(app.Out, fmt.Sprintf("No admission rule is against job %q.", job.ID), "Rule|Level|Task|Message|Reason", rows)
		}
		if err == nil && len(refused) > 0 {
			return fmt.Errorf("%s would refuse job %q", term.Plural(len(refused), "admission rule"), job.ID)
		}
		return err
	}
	c := term.Command(app, "test FILE|-", "Say which admission rules are against a job file", 1, 1, run)
	term.Describe(c, `
Asks the server, which judges the job as if the token that is shown registered it, and changes nothing. Rules of every level are told.

Exit codes: 0, 1 if a rule would refuse the job; 2 the file is wrong.`, "drover admission test web.hcl")
	f.bind(c.Flags())
	c.Flags().StringVarP(&o.Template, "template", "t", "", "print the verdicts with this Go template, as in -t '{{range .}}{{.Rule}} {{end}}'")
	return c
}
