package job

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// tagCommand is "drover job tag". A version with a tag is kept, however many there are after it.
func tagCommand(app *term.App) *cobra.Command {
	return term.Group("tag", "Name versions of jobs, so that they are kept", tagApplyCommand(app), tagUnsetCommand(app))
}

// tagPath is where a job's version is named.
func tagPath(j *drover.Job, name string) string {
	return api.JobPath(j.ID, "/versions/"+url.PathEscape(name)+"/tag")
}

// tagApplyCommand is "drover job tag apply".
func tagApplyCommand(app *term.App) *cobra.Command {
	name, description := "", ""
	version := int64(-1) // the newest
	run := func(ctx context.Context, c *api.Client, args []string) error {
		if name == "" {
			return drover.Errorf(drover.Invalid, "name the version with -name")
		}
		j, err := c.Job(ctx, args[0])
		if err != nil {
			return err
		}
		of := j.Version
		if version >= 0 {
			of = uint64(version)
		}
		body := map[string]any{"Version": of, "Description": description}
		if err := c.Put(ctx, tagPath(j, name), api.InNamespace(j.Namespace), body, nil); err != nil {
			return err
		}
		_, err = fmt.Fprintf(app.Out, "Version %d of job %q has the name %q now.\n", of, j.ID, name)
		return err
	}
	c := term.NomadCommand(app, "apply JOB", "Name a version of a job", 1, 1, run)
	term.Describe(c, `
The name stands for the version in 'job revert' and 'job history -diff-tag'. A name that another version has is refused.`,
		`drover job tag apply -name golden web
drover job tag apply -name golden -version 3 -description 'before the sale' web`)
	c.Flags().StringVar(&name, "name", "", "the name; 1 to 128 bytes; needed")
	c.Flags().StringVar(&description, "description", "", "what the version is; at most 1000 bytes")
	c.Flags().Int64Var(&version, "version", -1, "the version; default: the newest")
	return c
}

// tagUnsetCommand is "drover job tag unset". The version may be forgotten then.
func tagUnsetCommand(app *term.App) *cobra.Command {
	name := ""
	run := func(ctx context.Context, c *api.Client, args []string) error {
		if name == "" {
			return drover.Errorf(drover.Invalid, "say with -name which name to take away")
		}
		j, err := c.Job(ctx, args[0])
		if err != nil {
			return err
		}
		if err := c.Delete(ctx, tagPath(j, name), api.InNamespace(j.Namespace), nil); err != nil {
			return err
		}
		_, err = fmt.Fprintf(app.Out, "No version of job %q has the name %q any more.\n", j.ID, name)
		return err
	}
	c := term.NomadCommand(app, "unset JOB", "Take the name off a version of a job", 1, 1, run)
	c.Flags().StringVar(&name, "name", "", "the name; needed")
	return c
}

// versionOf returns the version that a person means: a number, or the name that 'job tag apply' gave. A name of digits
// only is therefore never found. Errors: the API's; NotFound.
func versionOf(ctx context.Context, c *api.Client, j *drover.Job, word string) (uint64, error) {
	if n, err := strconv.ParseUint(word, 10, 64); err == nil {
		return n, nil
	}
	all, err := versions(ctx, c, j, nil)
	if err != nil {
		return 0, err
	}
	i := slices.IndexFunc(all.Versions, func(v *drover.Job) bool { return v.VersionTag != nil && v.VersionTag.Name == word })
	if i < 0 {
		return 0, drover.Errorf(drover.NotFound, "job %q has no version %q: it is a number or a tag; 'drover job history %[1]s' lists them",
			j.ID, word)
	}
	return all.Versions[i].Version, nil
}
