package vars

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/secrets"
)

// Command is "drover var".
func Command(app *term.App) *cobra.Command {
	return term.Group("var", "Keep small secrets, encrypted",
		putCommand(app), getCommand(app), listCommand(app), purgeCommand(app), initCommand(app), lockCommand(app))
}

// varPath is where the API has the variable.
func varPath(path string) string {
	parts := strings.Split(strings.Trim(path, " /"), "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return "/v1/var/" + strings.Join(parts, "/")
}

// show prints a variable: one of its items alone, as data, or as a table.
func show(app *term.App, o *term.Output, v *secrets.Variable, item string) error {
	if item != "" {
		value, ok := v.Items[item]
		if !ok {
			return drover.Errorf(drover.NotFound, "the variable %s has no item %q", v.Path, item)
		}
		_, err := fmt.Fprintln(app.Out, value)
		return err
	}
	if done, err := o.Data(app.Out, v); done {
		return err
	}
	at := func(n int64) string { return time.Unix(0, n).UTC().Format(time.RFC3339) }
	facts := []string{
		"Namespace", v.Namespace, "Path", v.Path, "Create Time", at(v.CreateTime), "Modify Time", at(v.ModifyTime),
		"Check Index", fmt.Sprint(v.ModifyIndex),
	}
	if v.Lock != nil {
		facts = append(facts, "Lock TTL", v.Lock.TTL, "Lock Delay", v.Lock.LockDelay)
	}
	if err := term.Facts(app.Out, facts...); err != nil {
		return err
	}
	items := []string{}
	for _, key := range slices.Sorted(maps.Keys(v.Items)) {
		items = append(items, key, v.Items[key])
	}
	if len(items) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(app.Out, "\nItems"); err != nil {
		return err
	}
	return term.Facts(app.Out, items...)
}

// getCommand is "drover var get".
func getCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	var item string
	run := func(ctx context.Context, c *api.Client, args []string) error {
		var v secrets.Variable
		if _, err := c.Get(ctx, varPath(args[0]), nil, &v); err != nil {
			return err
		}
		return show(app, o, &v, item)
	}
	c := term.NomadCommand(app, "get PATH", "Show a variable", 1, 1, run)
	term.Describe(c, "Shows a variable with its items, or with -item the value of one of them alone.", `drover var get nomad/jobs/web
drover var get -item password nomad/jobs/web
drover var get -t '{{.Items.password}}' nomad/jobs/web`)
	c.Flags().StringVar(&item, "item", "", "print the value of this item alone")
	o.Bind(c.Flags())
	return c
}

// listCommand is "drover var list".
func listCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	run := func(ctx context.Context, c *api.Client, args []string) error {
		q := url.Values{}
		if len(args) > 0 {
			q.Set("prefix", args[0])
		}
		var list []*secrets.VariableMetadata
		if _, err := c.Get(ctx, "/v1/vars", q, &list); err != nil {
			return err
		}
		if done, err := o.Data(app.Out, list); done {
			return err
		}
		var rows [][]string
		for _, v := range list {
			rows = append(rows, []string{v.Namespace, v.Path, time.Unix(0, v.ModifyTime).UTC().Format(time.RFC3339)})
		}
		return term.Table(app.Out, "No matching variables found", "Namespace|Path|Last Updated", rows)
	}
	c := term.NomadCommand(app, "list [PREFIX]", "List the paths of variables", 0, 1, run)
	o.Bind(c.Flags())
	return c
}

// purgeCommand is "drover var purge".
func purgeCommand(app *term.App) *cobra.Command {
	var check string
	run := func(ctx context.Context, c *api.Client, args []string) error {
		q := url.Values{}
		if check != "" {
			q.Set("cas", check)
		}
		if err := c.Delete(ctx, varPath(args[0]), q, nil); err != nil {
			return conflict(err)
		}
		_, err := fmt.Fprintf(app.Out, "Successfully purged variable %q!\n", strings.Trim(args[0], " /"))
		return err
	}
	c := term.NomadCommand(app, "purge PATH", "Delete a variable", 1, 1, run)
	c.Flags().StringVar(&check, "check-index", "", "only if this is the variable's modify index")
	return c
}

// conflict makes of the answer to a failed check, which is the variable that is there, a sentence without its items.
func conflict(err error) error {
	if drover.CodeOf(err) == drover.Conflict {
		return drover.Errorf(drover.Conflict, "the variable is there with another index, or is locked: read it, and give -check-index or -force")
	}
	return err
}
