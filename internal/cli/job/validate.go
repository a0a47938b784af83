package job

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/term"
)

// validateCommand is "drover job validate". It never registers anything.
func validateCommand(app *term.App) *cobra.Command {
	f := &file{}
	run := func(ctx context.Context, app *term.App, args []string) error {
		return validate(ctx, app, f, args[0])
	}
	c := term.Command(app, "validate FILE|-", "Check a job file, and list all that is wrong", 1, 1, run)
	term.Describe(c, "Checks the file here; if an agent answers, it checks the job too.", "drover job validate web.hcl")
	f.bind(c.Flags())
	return c
}

// validate checks the job file here and, if an agent answers, the job by the server's rules. All faults are printed
// on stderr, then one error counts them. Errors: Invalid; the API's, except Unavailable.
func validate(ctx context.Context, app *term.App, f *file, path string) error {
	job, _, err := f.read(ctx, app, path)
	if err != nil {
		return err
	}
	c, err := app.Nomad()
	if err != nil {
		return err
	}
	var answer struct {
		ValidationErrors []string
		Error, Warnings  string
	}
	err = c.Put(ctx, "/v1/validate/job", nil, map[string]any{"Job": job}, &answer)
	switch {
	// Canonicalize first, as the server does: rules apply to the job with its defaults.
	case drover.CodeOf(err) == drover.Unavailable:
		fmt.Fprintln(app.Err, "No agent answers: checked here only.")
		job.Canonicalize()
		if err := job.Validate(); err != nil {
			return drover.Errorf(drover.Invalid, "%w", err)
		}
	case err != nil:
		return err
	case len(answer.ValidationErrors) > 0:
		for _, v := range answer.ValidationErrors {
			fmt.Fprintln(app.Err, " *", v)
		}
		return drover.Errorf(drover.Invalid, "%s in %s", term.Plural(len(answer.ValidationErrors), "fault"), path)
	case answer.Error != "":
		return drover.Errorf(drover.Invalid, "%s", answer.Error)
	case answer.Warnings != "":
		fmt.Fprintln(app.Err, "Warning:", answer.Warnings)
	}
	_, err = fmt.Fprintf(app.Out, "Job %q is valid.\n", job.ID)
	return err
}
