package env

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/clock"
)

// Command is "drover env".
func Command(app *term.App) *cobra.Command {
	return term.Group("env", "Keep environments: what warm runners are made from", putCommand(app), listCommand(app), statusCommand(app), deleteCommand(app))
}

type putFlags struct {
	env    execution.Environment
	file   string
	vars   []string
	meta   []string
	ports  []uint
	detach bool
	wait   time.Duration
}

func putCommand(app *term.App) *cobra.Command {
	f := &putFlags{}
	c := term.Command(app, "put NAME", "Make or replace an environment, and wait for its runners", 0, 1, nil)
	c.RunE = func(cmd *cobra.Command, args []string) error { return put(app, cmd, f, args) }
	term.Describe(c, `Makes or replaces an environment, and waits until its pool is full. Flags that are not given are kept when the environment
is there already. With -file the environment is read as JSON, as 'env status -json' prints it; flags go over it.`,
		"drover env put scratch -image host -pool-size 4\ndrover env put python -image python:3.13-slim -memory 128 -memory-max 512\ndrover env put -file python.json")
	fl, e := c.Flags(), &f.env
	fl.StringVar(&f.file, "file", "", "read the environment from this JSON file; - is stdin")
	fl.StringVar(&e.Image, "image", "", `"host" (this machine's own files), an OCI reference, or a path to an image`)
	fl.StringVar(&e.Driver, "driver", "", "sandbox (default), docker, raw_exec")
	fl.StringVar(&e.Runtime, "runtime", "", "docker: runc, runsc")
	fl.IntVar(&e.PoolSize, "pool-size", 1, "warm runners to keep")
	fl.IntVar(&e.MaxRunners, "max-runners", 0, "most runners at once, warm and claimed; 0: no bound")
	fl.IntVar(&e.CPU, "cpu", 0, "MHz")
	fl.IntVar(&e.MemoryMB, "memory", 0, "MB reserved")
	fl.IntVar(&e.MemoryMaxMB, "memory-max", 0, "MB at most")
	fl.IntVar(&e.DiskMB, "disk", 0, "MB of the writable layer")
	fl.IntVar(&e.PidsLimit, "pids", 0, "processes at most")
	fl.BoolVar(&e.Network, "network", false, "let runners use the network")
	fl.UintSliceVar(&f.ports, "port", nil, "a port to expose; can be repeated; needs -network")
	fl.StringVar(&e.User, "user", "", "user of unprivileged executions")
	fl.StringVar(&e.WorkDir, "work-dir", "", "working directory; default: the image's")
	fl.StringArrayVar(&f.vars, "env", nil, "environment variable, KEY=value; can be repeated")
	fl.StringArrayVar(&f.meta, "meta", nil, "metadata, key=value; can be repeated")
	fl.DurationVar(&e.IdleTimeout, "idle-timeout", 0, "end a claimed runner that nobody used for so long; 0: never")
	fl.BoolVar(&f.detach, "detach", false, "do not wait for the pool")
	fl.DurationVar(&f.wait, "wait", 5*time.Minute, "how long to wait for the pool")
	return c
}

func put(app *term.App, cmd *cobra.Command, f *putFlags, args []string) error {
	ctx := cmd.Context()
	c, err := app.Native()
	if err != nil {
		return err
	}
	env, err := wanted(ctx, app, c, cmd, f, args)
	if err != nil {
		return err
	}
	put, created, err := c.PutEnvironment(ctx, env)
	if err != nil {
		return err
	}
	what := "replaced"
	if created {
		what = "made"
	}
	fmt.Fprintf(app.Out, "Environment %q is %s.\n", put.ID, what)
	if f.detach {
		return nil
	}
	return awaitPool(ctx, app, c, put.ID, put.PoolSize, f.wait)
}

// wanted is the environment of the file, else the one that is there, with the flags over it.
func wanted(ctx context.Context, app *term.App, c *client.Client, cmd *cobra.Command, f *putFlags, args []string) (env execution.Environment, err error) {
	if f.file != "" {
		text, err := app.ReadInput(ctx, f.file)
		if err != nil {
			return env, err
		}
		if err := decode(text, &env); err != nil {
			return env, drover.Errorf(drover.Invalid, "reading %s: %w", f.file, err)
		}
	}
	if len(args) > 0 {
		env.ID = args[0]
	}
	if env.ID == "" {
		return env, drover.Errorf(drover.Invalid, "name the environment")
	}
	if f.file == "" {
		old, err := c.Environment(ctx, env.ID)
		switch {
		case err == nil:
			env = old
		case drover.CodeOf(err) != drover.NotFound:
			return env, err
		default:
			env.PoolSize = f.env.PoolSize
		}
	}
	return env, f.apply(cmd, &env)
}

// decode reads an environment, alone or as "env status -json" prints it.
func decode(text []byte, env *execution.Environment) error {
	var w struct{ Environment *execution.Environment }
	if err := json.Unmarshal(text, &w); err == nil && w.Environment != nil {
		*env = *w.Environment
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(env); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more behind the environment")
	}
	return nil
}

// apply sets what flags say.
func (f *putFlags) apply(cmd *cobra.Command, env *execution.Environment) (err error) {
	for flag, set := range map[string]func(){
		"image": func() { env.Image = f.env.Image }, "driver": func() { env.Driver = f.env.Driver },
		"runtime": func() { env.Runtime = f.env.Runtime }, "pool-size": func() { env.PoolSize = f.env.PoolSize },
		"max-runners": func() { env.MaxRunners = f.env.MaxRunners }, "cpu": func() { env.CPU = f.env.CPU },
		"memory": func() { env.MemoryMB = f.env.MemoryMB }, "memory-max": func() { env.MemoryMaxMB = f.env.MemoryMaxMB },
		"disk": func() { env.DiskMB = f.env.DiskMB }, "pids": func() { env.PidsLimit = f.env.PidsLimit },
		"network": func() { env.Network = f.env.Network }, "user": func() { env.User = f.env.User },
		"work-dir": func() { env.WorkDir = f.env.WorkDir }, "idle-timeout": func() { env.IdleTimeout = f.env.IdleTimeout },
		"port": func() { err = f.exposed(env) },
	} {
		if cmd.Flags().Changed(flag) {
			set()
		}
	}
	if err != nil {
		return err
	}
	if len(f.ports) > 0 && !env.Network {
		return drover.Errorf(drover.Invalid, "-port needs -network: without it nobody reaches a runner")
	}
	if len(f.vars) > 0 {
		if env.Env, err = term.KeyValues("-env", f.vars); err != nil {
			return err
		}
	}
	if len(f.meta) > 0 {
		env.Meta, err = term.KeyValues("-meta", f.meta)
	}
	return err
}

func (f *putFlags) exposed(env *execution.Environment) error {
	env.ExposedPorts = nil
	for _, p := range f.ports {
		if p == 0 || p > 65535 {
			return drover.Errorf(drover.Invalid, "-port %d is not from 1 to 65535", p)
		}
		env.ExposedPorts = append(env.ExposedPorts, uint16(p))
	}
	return nil
}

// poolPoll is how often a filling pool is looked at.
const poolPoll = 100 * time.Millisecond

// awaitPool waits until a pool is full, and tells how it goes.
func awaitPool(ctx context.Context, app *term.App, c *client.Client, id string, size int, wait time.Duration) error {
	asked := ctx
	ctx, cancel := clock.Wall{}.WithTimeout(ctx, wait)
	defer cancel()
	told := ""
	for {
		p, err := c.Pool(ctx, id)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil {
			if now := poolLine(p); now != told {
				told = now
				fmt.Fprintln(app.Out, "   ", now)
			}
			if p.Warm >= size {
				return nil
			}
		}
		switch {
		case clock.Sleep(ctx, clock.Wall{}, poolPoll):
		case asked.Err() != nil:
			return drover.Errorf(drover.Canceled, "interrupted; the pool of %q goes on filling", id)
		default:
			return drover.Errorf(drover.Unavailable, "the pool of %q did not fill within %v: %s; 'drover env status %[1]s' tells how it stands", id, wait, told)
		}
	}
}

func poolLine(p execution.PoolStatus) string {
	parts := []string{fmt.Sprintf("%d of %d warm", p.Warm, p.Size)}
	for _, s := range []struct {
		n    int
		what string
	}{{p.Starting, "starting"}, {p.Queued, "queued"}, {p.Claimed, "claimed"}, {p.Waiting, "claims waiting"}} {
		if s.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", s.n, s.what))
		}
	}
	text := strings.Join(parts, ", ")
	if p.LastError != "" && p.Warm < p.Size {
		text += "; last error: " + term.OneLine(p.LastError)
	}
	return text
}

func listCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	c := term.Command(app, "list", "List environments with their pools", 0, 0, func(ctx context.Context, app *term.App, _ []string) error {
		c, err := app.Native()
		if err != nil {
			return err
		}
		list, err := c.Environments(ctx)
		if err != nil {
			return err
		}
		if done, err := o.Data(app.Out, list); done {
			return err
		}
		var rows [][]string
		for _, e := range list {
			p, err := c.Pool(ctx, e.ID)
			if drover.CodeOf(err) == drover.NotFound {
				continue // deleted meanwhile
			}
			if err != nil {
				return err
			}
			rows = append(rows, []string{e.ID, e.Image, e.Driver, strconv.Itoa(p.Size), strconv.Itoa(p.Warm), strconv.Itoa(p.Claimed), term.OneLine(p.LastError)})
		}
		return term.Table(app.Out, "There are no environments: 'drover env put' makes one.", "Name|Image|Driver|Pool|Warm|Claimed|Last error", rows)
	})
	o.Bind(c.Flags())
	return c
}

func statusCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	c := term.Command(app, "status NAME", "Show an environment and how its pool stands", 1, 1, func(ctx context.Context, app *term.App, args []string) error {
		c, err := app.Native()
		if err != nil {
			return err
		}
		v := struct {
			Environment execution.Environment
			Pool        execution.PoolStatus
		}{}
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
	})
	o.Bind(c.Flags())
	return c
}

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

// weakerNodes says which ready nodes hold runners less than they could, and what they lack.
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
		told = append(told, fmt.Sprintf("On node %s runners are held less than they could be: %s", n.Name, d.Attributes["driver."+driver+".weaker"]))
	}
	if len(told) == 0 {
		return nil
	}
	_, err = fmt.Fprintf(app.Out, "\n%s\n", strings.Join(told, "\n"))
	return err
}

func deleteCommand(app *term.App) *cobra.Command {
	return term.Command(app, "delete NAME", "Delete an environment and end all its runners", 1, 1, func(ctx context.Context, app *term.App, args []string) error {
		c, err := app.Native()
		if err != nil {
			return err
		}
		if err := c.DeleteEnvironment(ctx, args[0]); err != nil {
			return err
		}
		_, err = fmt.Fprintf(app.Out, "Environment %q is deleted.\n", args[0])
		return err
	})
}
