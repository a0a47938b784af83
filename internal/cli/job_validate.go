package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
)

func (a *App) jobValidateCommand() *cobra.Command {
	f := &jobFile{}
	c := leaf("validate FILE|-", "Check a job file, and list all that is wrong", 1, 1, func(ctx context.Context, args []string) error {
		return a.jobValidate(ctx, f, args[0])
	})
	with(c, "Checks the file here; if an agent answers, it checks the job too.", "drover job validate web.hcl")
	f.bind(c.Flags())
	return c
}

func (a *App) jobValidate(ctx context.Context, f *jobFile, path string) error {
	job, _, err := f.read(ctx, a, path)
	if err != nil {
		return err
	}
	c, err := a.asks()
	if err != nil {
		return err
	}
	var answer struct {
		ValidationErrors []string
		Error, Warnings  string
	}
	err = c.put(ctx, "/v1/validate/job", nil, map[string]any{"Job": job}, &answer)
	switch {
	case drover.CodeOf(err) == drover.Unavailable:
		fmt.Fprintln(a.Err, "No agent answers: checked here only.")
		job.Canonicalize()
		if err := job.Validate(); err != nil {
			return drover.Errorf(drover.Invalid, "%w", err)
		}
	case err != nil:
		return err
	case len(answer.ValidationErrors) > 0:
		for _, v := range answer.ValidationErrors {
			fmt.Fprintln(a.Err, " *", v)
		}
		return drover.Errorf(drover.Invalid, "%s in %s", plural(len(answer.ValidationErrors), "fault"), path)
	case answer.Error != "":
		return drover.Errorf(drover.Invalid, "%s", answer.Error)
	case answer.Warnings != "":
		fmt.Fprintln(a.Err, "Warning:", answer.Warnings)
	}
	_, err = fmt.Fprintf(a.Out, "Job %q is valid.\n", job.ID)
	return err
}
