package env

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/cli/term"
)

// putFlags are the flags of "drover env put".
type putFlags struct {
	// Values of the simple flags. Only those that were given count: apply looks at them.
	env execution.Environment
	// The environment as JSON; "" for the one on the server, "-" for stdin.
	file string
	// Words KEY=value, which replace all variables of the environment.
	vars []string
	// Words key=value, which replace all metadata.
	meta  []string
	ports []uint
	// Ends the command once the environment is stored, before its pool is full.
	detach bool
	wait   time.Duration
}

// putCommand is "drover env put". The name may be missing if the file has it.
func putCommand(app *term.App) *cobra.Command {
	f := &putFlags{}
	c := term.Command(app, "put NAME", "Make or replace an environment, and wait for its runners", 0, 1, nil)
	c.RunE = func(cmd *cobra.Command, args []string) error { return put(app, cmd, f, args) }
	term.Describe(c, `
Makes or replaces an environment, and waits until its pool is full. Flags that are not given are kept when the environment
is there already. The wait ends at once when a failure came that waiting does not mend, as an image that is not there, or a
driver that no node has and no pool of the fleet may bring; the environment is stored all the same, and its runners are
tried again now and then. With -file the environment is read as JSON, as 'env status -json' prints it; flags go over it.`,
		`drover env put scratch -image host -pool-size 4
drover env put python -image python:3.13-slim -memory 128 -memory-max 512
drover env put -file python.json`)
	fl := c.Flags()
	f.env.PoolSize = 1
	fl.StringVar(&f.file, "file", "", "read the environment from this JSON file; - is stdin")
	bindEnvironment(fl, &f.env)
	fl.UintSliceVar(&f.ports, "port", nil, "a port to expose; can be repeated; needs -network")
	fl.StringArrayVar(&f.vars, "env", nil, "environment variable, KEY=value; can be repeated")
	fl.StringArrayVar(&f.meta, "meta", nil, "metadata, key=value; can be repeated")
	fl.BoolVar(&f.detach, "detach", false, "do not wait for the pool")
	fl.DurationVar(&f.wait, "wait", 5*time.Minute, "how long to wait for the pool")
	return c
}

// bindEnvironment adds a flag for each simple field of e, whose default is the field's value. It is used twice: for
// the command's flags, and to set a given flag on an environment that was read.
func bindEnvironment(fl *pflag.FlagSet, e *execution.Environment) {
	fl.StringVar(&e.Image, "image", e.Image, `"host" (this machine's own files), an OCI reference, or a path to an image`)
	fl.StringVar(&e.Driver, "driver", e.Driver, "sandbox (default), docker, podman, raw_exec")
	fl.StringVar(&e.Runtime, "runtime", e.Runtime, "docker: runc, runsc")
	fl.IntVar(&e.PoolSize, "pool-size", e.PoolSize, "warm runners to keep")
	fl.IntVar(&e.MaxRunners, "max-runners", e.MaxRunners, "most runners at once, warm and claimed; 0: no bound")
	fl.IntVar(&e.CPU, "cpu", e.CPU, "MHz")
	fl.IntVar(&e.MemoryMB, "memory", e.MemoryMB, "MB reserved")
	fl.IntVar(&e.MemoryMaxMB, "memory-max", e.MemoryMaxMB, "MB at most")
	fl.IntVar(&e.DiskMB, "disk", e.DiskMB, "MB of the writable layer")
	fl.IntVar(&e.PidsLimit, "pids", e.PidsLimit, "processes at most")
	fl.BoolVar(&e.Network, "network", e.Network, "let runners use the network")
	fl.StringVar(&e.User, "user", e.User, "user of unprivileged executions")
	fl.StringVar(&e.WorkDir, "work-dir", e.WorkDir, "working directory; default: the image's")
	fl.DurationVar(&e.IdleTimeout, "idle-timeout", e.IdleTimeout, "end a claimed runner that nobody used for so long; 0: never")
}

// put stores the environment and waits for its pool. The server replaces environments whole, so flags that were not
// given are filled from the one that is there. Errors: Invalid; the API's; those of awaitPool.
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
	before, _ := c.Pool(ctx, env.Key()) // there may be none
	put, created, err := c.PutEnvironment(ctx, env)
	if err != nil {
		return err
	}
	what := "Replaced"
	if created {
		what = "Created"
	}
	fmt.Fprintf(app.Out, "%s environment %q.\n", what, put.ID)
	if f.detach {
		return nil
	}
	// An old failure counts only when it came again: what was wrong may have been mended, such as by a push of the image.
	return awaitPool(ctx, app, app.Out, c, filling{put.ID, put.Namespace, put.PoolSize, f.wait, before.FailedAt})
}

// wanted returns the environment to be stored: that of the file, else the one on the server, else a new one, with the
// given flags over it. The argument's name comes before the file's. Errors: Invalid; the API's.
func wanted(
	ctx context.Context, app *term.App, c *client.Client, cmd *cobra.Command, f *putFlags, args []string,
) (env execution.Environment, err error) {
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
			// A new environment has the flag's default of one warm runner; a file without the field has none.
			env.PoolSize = f.env.PoolSize
		}
	}
	return env, f.apply(cmd, &env)
}

// decode reads an environment, alone or in the shape of "env status -json". An unknown field is an error, as it is most likely a
// misspelt one. So is one beside the environment, which was meant to be in it. Errors: those of the JSON.
func decode(text []byte, env *execution.Environment) error {
	var w map[string]json.RawMessage
	if err := json.Unmarshal(text, &w); err == nil && w["Environment"] != nil {
		for _, name := range slices.Sorted(maps.Keys(w)) {
			if name != "Environment" && name != "Pool" {
				return fmt.Errorf("%q is beside the environment, and has to be in it", name)
			}
		}
		text = w["Environment"]
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(env); err != nil {
		return err
	}
	// A decoder stops behind the first value, so a second one would be lost without a word.
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more behind the environment")
	}
	return nil
}

// apply sets the fields whose flags were given, and leaves the others as they are. Lists and maps are replaced as a
// whole. Errors: Invalid.
func (f *putFlags) apply(cmd *cobra.Command, env *execution.Environment) (err error) {
	fields := pflag.NewFlagSet("fields", pflag.ContinueOnError)
	bindEnvironment(fields, env)
	// Visit goes over given flags only; a given value equal to the default counts too.
	cmd.Flags().Visit(func(given *pflag.Flag) {
		if fields.Lookup(given.Name) != nil {
			err = errors.Join(err, fields.Set(given.Name, given.Value.String()))
		}
	})
	if err != nil {
		return err
	}
	if cmd.Flags().Changed("port") {
		if err := f.exposed(env); err != nil {
			return err
		}
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

// exposed replaces the environment's ports by those of -port. Errors: Invalid for a number that is no port.
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
