package job

import (
	"context"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/jobdiff"
)

// inspectCommand is "drover job inspect". It prints {"Job": {…}}, which 'job run' reads again. A template is applied
// to the same object, so it begins with .Job.
func inspectCommand(app *term.App) *cobra.Command {
	// -1 means the current version; 0 is a version of its own.
	version, source := int64(-1), false
	o := &term.Output{}
	run := func(ctx context.Context, c *api.Client, args []string) error {
		j, err := c.Job(ctx, args[0])
		if err != nil {
			return err
		}
		if version >= 0 {
			if j, err = jobVersion(ctx, c, j, uint64(version)); err != nil {
				return err
			}
		}
		if source {
			return printSource(ctx, app, c, j)
		}
		// JSON is the default here, unlike elsewhere; Data refuses JSON and a template together.
		o.JSON = o.Template == ""
		_, err = o.Data(app.Out, map[string]any{"Job": j})
		return err
	}
	c := term.NomadCommand(app, "inspect JOB", "Print a job as JSON, as 'job run' reads it", 1, 1, run)
	c.Flags().Int64Var(&version, "version", -1, "an older version")
	c.Flags().StringVarP(&o.Template, "template", "t", "", "print with this Go template")
	// The flag exists for Nomad's scripts. Nobody reads its value: JSON is printed anyway.
	c.Flags().Bool("json", true, "print JSON, as it does without -hcl")
	c.Flags().BoolVar(&source, "hcl", false, "print the text that it was registered with")
	return c
}

// printSource prints the text that this version of the job was made of, as it was, without a newline of its own.
// Errors: the API's, NotFound if the version was registered without a source.
func printSource(ctx context.Context, app *term.App, c *api.Client, j *drover.Job) error {
	q := api.InNamespace(j.Namespace)
	q.Set("version", strconv.FormatUint(j.Version, 10))
	var source drover.JobSubmission
	if _, err := c.Get(ctx, api.JobPath(j.ID, "/submission"), q, &source); err != nil {
		return err
	}
	_, err := io.WriteString(app.Out, source.Source)
	return err
}

// kept are the versions of a job that the server keeps, newest first. Diffs[i] is what Versions[i] changed against the one
// before it, so there is one less: the oldest has nothing to be compared with. Against a chosen one, all are compared.
type kept struct {
	Versions []*drover.Job
	Diffs    []*jobdiff.Job
}

// versions lists the versions of a job. diff is the query that says what they are compared with; nil: they are not.
func versions(ctx context.Context, c *api.Client, j *drover.Job, diff url.Values) (out kept, err error) {
	q := api.InNamespace(j.Namespace)
	maps.Copy(q, diff)
	_, err = c.Get(ctx, api.JobPath(j.ID, "/versions"), q, &out)
	return out, err
}

// jobVersion returns one version of a job. Errors: the API's; NotFound if the server no longer keeps that version.
func jobVersion(ctx context.Context, c *api.Client, j *drover.Job, version uint64) (*drover.Job, error) {
	all, err := versions(ctx, c, j, nil)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all.Versions, func(v *drover.Job) bool { return v.Version == version })
	if i < 0 {
		return nil, drover.Errorf(drover.NotFound, "job %q has no version %d; 'drover job history %[1]s' lists them", j.ID, version)
	}
	return all.Versions[i], nil
}
