package env

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/cli/term"
)

// Command is "drover env".
func Command(app *term.App) *cobra.Command {
	return term.Group("env", "Keep environments: what warm runners are made from",
		putCommand(app), listCommand(app), statusCommand(app), historyCommand(app), sizeCommand(app), deleteCommand(app))
}

// listCommand is "drover env list". For people each environment's pool is read too, in one request each; -json prints
// the environments alone.
func listCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	run := func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := c.Environments(ctx)
		if err != nil {
			return err
		}
		if done, err := o.Data(app.Out, list); done {
			return err
		}
		var rows [][]string
		for _, e := range list {
			p, err := c.Pool(ctx, e.Key())
			if drover.CodeOf(err) == drover.NotFound {
				continue // deleted meanwhile
			}
			if err != nil {
				return err
			}
			rows = append(rows, []string{
				e.Key(), e.Image, e.Driver, strconv.Itoa(p.Size), strconv.Itoa(p.Warm), strconv.Itoa(p.Claimed),
				term.OneLine(p.LastError),
			})
		}
		return term.Table(app.Out, "There are no environments: 'drover env put' makes one.", "Name|Image|Driver|Pool|Warm|Claimed|Last error",
			rows)
	}
	c := term.NativeCommand(app, "list", "List environments with their pools", 0, 0, run)
	o.Bind(c.Flags())
	return c
}

// statusCommand is "drover env status". Its JSON is {"Environment", "Pool"}, which 'env put -file' reads again.
func statusCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	run := func(ctx context.Context, c *client.Client, args []string) (err error) {
		var v struct {
			Environment execution.Environment
			Pool        execution.PoolStatus
		}
		if v.Environment, err = c.Environment(ctx, args[0]); err != nil {
			return err
		}
		if v.Pool, err = c.Pool(ctx, args[0]); err != nil {
			return err
		}
		if done, err := o.Data(app.Out, v); done {
			return err
		}
		if err := showFacts(app, v.Environment, v.Pool); err != nil {
			return err
		}
		return weakerNodes(ctx, app, v.Environment.Driver)
	}
	c := term.NativeCommand(app, "status NAME", "Show an environment and how its pool stands", 1, 1, run)
	o.Bind(c.Flags())
	return c
}

// showFacts prints the environment and its pool; limits that are not set (0) are left out.
func showFacts(app *term.App, e execution.Environment, p execution.PoolStatus) error {
	number := func(n int, unit string) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprintf("%d%s", n, unit)
	}
	ports := strings.Trim(fmt.Sprint(e.ExposedPorts), "[]")
	idle := ""
	if e.IdleTimeout > 0 {
		idle = e.IdleTimeout.String()
	}
	return term.Facts(app.Out, "Name", e.ID, "Image", e.Image, "Driver", e.Driver, "Runtime", e.Runtime, "Pool", poolLine(p),
		"Most runners", number(e.MaxRunners, ""), "CPU", number(e.CPU, " MHz"), "Memory", number(e.MemoryMB, " MB"),
		"Memory at most", number(e.MemoryMaxMB, " MB"), "Disk", number(e.DiskMB, " MB"), "Processes", number(e.PidsLimit, ""),
		"Network", term.YesNo(e.Network), "Ports", ports, "User", e.User, "Working directory", e.WorkDir, "Env", term.Pairs(e.Env),
		"Idle timeout", idle, "Meta", term.Pairs(e.Meta))
}

// weakerNodes says which ready nodes hold runners less than they could, and what they lack, as their drivers report
// it. It prints nothing if there is none, or if nodes cannot be listed: the environment itself was shown.
func weakerNodes(ctx context.Context, app *term.App, driver string) error {
	c, err := app.Nomad()
	if err != nil {
		return err
	}
	var nodes []*drover.NodeListStub
	if _, err := c.Get(ctx, "/v1/nodes", nil, &nodes); err != nil {
		return nil //nolint:nilerr // on a Nomad cluster that is elsewhere, say; the environment was shown
	}
	var told []string
	for _, n := range nodes {
		d := n.Drivers[driver]
		if d == nil || n.Status != drover.NodeStatusReady || d.Attributes["driver."+driver+".weaker"] == "" {
			continue
		}
		told = append(told, fmt.Sprintf("On node %s runners are held less than they could be: %s", n.Name,
			d.Attributes["driver."+driver+".weaker"]))
	}
	if len(told) == 0 {
		return nil
	}
	_, err = fmt.Fprintf(app.Out, "\n%s\n", strings.Join(told, "\n"))
	return err
}

// sizeCommand is "drover env size". It changes nothing else, whoever changes something else meanwhile.
func sizeCommand(app *term.App) *cobra.Command {
	was := -1
	run := func(ctx context.Context, c *client.Client, args []string) error {
		size, err := strconv.Atoi(args[1])
		if err != nil {
			return drover.Errorf(drover.Invalid, "size: want a number of runners, got %q", args[1])
		}
		known := &was
		if was < 0 {
			known = nil
		}
		e, err := c.ResizePool(ctx, args[0], size, known)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(app.Out, "Environment %q keeps %d warm.\n", args[0], e.PoolSize)
		return err
	}
	c := term.NativeCommand(app, "size NAME SIZE", "Set how many runners an environment keeps warm, and nothing else of it", 2, 2, run)
	c.Flags().IntVar(&was, "was", was, "only if that is the size by now; -1: whatever it is")
	return c
}

// deleteCommand is "drover env delete". Claimed runners end too, with whatever runs in them; nothing is asked before.
func deleteCommand(app *term.App) *cobra.Command {
	run := func(ctx context.Context, c *client.Client, args []string) error {
		if err := c.DeleteEnvironment(ctx, args[0]); err != nil {
			return err
		}
		_, err := fmt.Fprintf(app.Out, "Deleted environment %q.\n", args[0])
		return err
	}
	return term.NativeCommand(app, "delete NAME", "Delete an environment and end all its runners", 1, 1, run)
}
