package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
)

func (a *App) jobInspectCommand() *cobra.Command {
	version, source := int64(-1), false
	o := &output{}
	c := leaf("inspect JOB", "Print a job as JSON, as 'job run' reads it", 1, 1, func(ctx context.Context, args []string) error {
		c, err := a.asks()
		if err != nil {
			return err
		}
		j, err := c.job(ctx, args[0])
		if err != nil {
			return err
		}
		if version >= 0 {
			if j, err = c.jobVersion(ctx, j, uint64(version)); err != nil {
				return err
			}
		}
		if source {
			return a.printSource(ctx, c, j)
		}
		o.json = o.template == ""
		_, err = o.data(a.Out, map[string]any{"Job": j})
		return err
	})
	c.Flags().Int64Var(&version, "version", -1, "an older version")
	c.Flags().StringVarP(&o.template, "template", "t", "", "print with this Go template")
	c.Flags().Bool("json", true, "print JSON, as it does without -hcl")
	c.Flags().BoolVar(&source, "hcl", false, "print the text that it was registered with")
	return c
}

// printSource prints the text that this version of the job was made of.
func (a *App) printSource(ctx context.Context, c *api, j *drover.Job) error {
	q := inNamespace(j.Namespace)
	q.Set("version", strconv.FormatUint(j.Version, 10))
	var source drover.JobSubmission
	if _, err := c.get(ctx, jobPath(j.ID, "/submission"), q, &source); err != nil {
		return err
	}
	_, err := io.WriteString(a.Out, source.Source)
	return err
}

// versions lists the versions of a job, newest first.
func (c *api) versions(ctx context.Context, j *drover.Job) (out struct {
	Versions []*drover.Job
	Diffs    []*drover.JobDiff
}, err error,
) {
	q := inNamespace(j.Namespace)
	q.Set("diffs", "true")
	_, err = c.get(ctx, jobPath(j.ID, "/versions"), q, &out)
	return out, err
}

func (c *api) jobVersion(ctx context.Context, j *drover.Job, version uint64) (*drover.Job, error) {
	all, err := c.versions(ctx, j)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all.Versions, func(v *drover.Job) bool { return v.Version == version })
	if i < 0 {
		return nil, drover.Errorf(drover.NotFound, "job %q has no version %d; 'drover job history %[1]s' lists them", j.ID, version)
	}
	return all.Versions[i], nil
}

func (a *App) jobHistoryCommand() *cobra.Command {
	var diff bool
	o := &output{}
	c := leaf("history JOB", "List the versions of a job", 1, 1, func(ctx context.Context, args []string) error {
		c, err := a.asks()
		if err != nil {
			return err
		}
		j, err := c.job(ctx, args[0])
		if err != nil {
			return err
		}
		all, err := c.versions(ctx, j)
		if err != nil {
			return err
		}
		if done, err := o.data(a.Out, all.Versions); done {
			return err
		}
		for i, v := range all.Versions {
			if i > 0 {
				fmt.Fprintln(a.Out)
			}
			if err := facts(a.Out, "Version", fmt.Sprint(v.Version), "Stable", yes(v.Stable), "Submitted", nanos(v.SubmitTime)); err != nil {
				return err
			}
			if diff && i < len(all.Diffs) && all.Diffs[i] != nil {
				(&differ{w: a.Out}).job(all.Diffs[i])
			}
		}
		return nil
	})
	c.Flags().BoolVarP(&diff, "diff", "p", false, "show what each version changed")
	o.bind(c.Flags())
	return c
}
