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

// historyFlags are the flags of "drover job history".
type historyFlags struct {
	term.Output
	diff, full bool
	// Negative: all versions.
	version int64
	// What all versions are compared with, in place of the one before each.
	diffTag, diffVersion string
}

// historyCommand is "drover job history". For programs it prints the jobs themselves, without the differences.
func historyCommand(app *term.App) *cobra.Command {
	f := &historyFlags{}
	run := func(ctx context.Context, c *api.Client, args []string) error { return history(ctx, app, c, f, args[0]) }
	c := term.NomadCommand(app, "history JOB", "List the versions of a job", 1, 1, run)
	term.Describe(c, "", `drover job history -p web
drover job history -p -diff-tag golden web`)
	fl := c.Flags()
	fl.BoolVarP(&f.diff, "diff", "p", false, "show what each version changed")
	fl.BoolVar(&f.full, "full", false, "print each version as JSON")
	fl.Int64Var(&f.version, "version", -1, "only this version")
	fl.StringVar(&f.diffTag, "diff-tag", "", "compare with the version of this name")
	fl.StringVar(&f.diffVersion, "diff-version", "", "compare with this version")
	f.Bind(fl)
	return c
}

// history reads the versions and prints them. Errors: the API's; Invalid, NotFound.
func history(ctx context.Context, app *term.App, c *api.Client, f *historyFlags, prefix string) error {
	if f.diffTag != "" && f.diffVersion != "" {
		return drover.Errorf(drover.Invalid, "-diff-tag and -diff-version cannot be given together")
	}
	j, err := c.Job(ctx, prefix)
	if err != nil {
		return err
	}
	var q url.Values
	if f.diff || f.diffTag != "" || f.diffVersion != "" {
		f.diff, q = true, api.Query("diffs", "true", "diff_tag", f.diffTag, "diff_version", f.diffVersion)
	}
	all, err := versions(ctx, c, j, q)
	if err != nil {
		return err
	}
	if f.version >= 0 {
		i := slices.IndexFunc(all.Versions, func(v *drover.Job) bool { return v.Version == uint64(f.version) })
		if i < 0 {
			return drover.Errorf(drover.NotFound, "job %q has no version %d", j.ID, f.version)
		}
		all.Versions, all.Diffs = all.Versions[i:i+1], all.Diffs[min(i, len(all.Diffs)):]
	}
	if done, err := f.Data(app.Out, all.Versions); done {
		return err
	}
	for i, v := range all.Versions {
		if i > 0 {
			fmt.Fprintln(app.Out)
		}
		if err := f.show(app, v); err != nil {
			return err
		}
		if f.diff && i < len(all.Diffs) && all.Diffs[i] != nil {
			(&differ{w: app.Out}).job(all.Diffs[i])
		}
	}
	return nil
}

// show prints one version.
func (f *historyFlags) show(app *term.App, v *drover.Job) error {
	name, description := "", ""
	if t := v.VersionTag; t != nil {
		name, description = t.Name, t.Description
	}
	if err := term.Facts(app.Out, "Version", strconv.FormatUint(v.Version, 10), "Stable", term.YesNo(v.Stable),
		"Submitted", term.StampNanos(v.SubmitTime), "Tag", name, "Tag description", description); err != nil || !f.full {
		return err
	}
	return term.PrintJSON(app.Out, v)
}
