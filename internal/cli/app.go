// Package cli is the command line. It uses the HTTP API as everybody does; the agent is given to it as a function.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/version"
)

// App is the command line's world.
type App struct {
	In     io.Reader
	Out    io.Writer
	Err    io.Writer
	Getenv func(string) string
	// RunAgent runs an agent until ctx ends; ready is called once its faces are served at addr.
	RunAgent func(ctx context.Context, cfg *config.Agent, logs io.Writer, ready func(addr string)) error
	// Try runs hostile programs in sandboxes of this machine, in a new folder below dir ("" = any), and tells of each
	// how it fared: contained, weak, escaped, not tried.
	Try func(ctx context.Context, dir string, tell func(program, state, says string)) error
	// Overlay reports whether sandboxes can layer images here.
	Overlay func() bool
	// Groups says what control groups an agent with our rights has here, and what is weaker for want of more.
	Groups func() (has string, weaker []string)
	// FillState fills a data folder with a large state, for the bench; it returns how long that and its snapshot took.
	FillState func(ctx context.Context, dataDir string, nodes, allocs int) (filled, snapshot time.Duration, err error)
	// CheckFleet tries a pool of the configuration with one real machine, and tells each step.
	CheckFleet func(ctx context.Context, cfg *config.Agent, ask fleet.Check, report func(fleet.CheckStep)) error
	// FleetFigures measures the fleet on simulated clouds, for the bench.
	FleetFigures func(ctx context.Context, quick bool, now func() time.Time, tell func(name string, value float64, unit, goal string)) error
	// Simulate runs a policy of the fleet on virtual time.
	Simulate func(ctx context.Context, ask fleet.Simulation) ([]fleet.Simulated, error)

	target target // of commands that ask an agent
}

// Exit codes that scripts can rely on.
const (
	exitFailure  = 1
	exitUsage    = 2
	exitNotFound = 3
	exitNoPlace  = 4 // a job was registered but not all of it could be placed

	exitPipe = 141 // nobody reads what we print
)

// exitError carries an exit code, and perhaps nothing to say.
type exitError struct {
	code int
	err  error
}

// Error returns the message.
func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

// Main runs one command and returns the exit code.
func (a *App) Main(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(doubleDashes(root, args))
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil && drover.CodeOf(err) == drover.Canceled:
		return interruptCode(ctx)
	}
	if text := err.Error(); text != "" {
		fmt.Fprintln(a.Err, "Error:", text+advice(err))
	}
	var exit *exitError
	switch {
	case errors.As(err, &exit):
		return exit.code
	case drover.CodeOf(err) == drover.NotFound:
		return exitNotFound
	case drover.CodeOf(err) == drover.Invalid:
		return exitUsage
	}
	return exitFailure
}

// advice says what helps when an agent, or what stands before it, wants another token.
func advice(err error) string {
	switch code := drover.CodeOf(err); {
	case strings.Contains(err.Error(), "DROVER_TOKEN"):
		return ""
	case code == drover.Unauthorized:
		return "; give it with -token or DROVER_TOKEN (NOMAD_TOKEN)"
	case code == drover.Forbidden && strings.Contains(err.Error(), "Permission denied"):
		return "; -token or DROVER_TOKEN (NOMAD_TOKEN) gives another"
	}
	return ""
}

// Root returns the tree of all commands; the reference in docs is written from it.
func (a *App) Root() *cobra.Command { return a.root() }

func (a *App) root() *cobra.Command {
	root := group("drover", "Run code on a herd of machines: jobs, executions in warm runners, a fleet")
	root.Args, root.SilenceErrors, root.SilenceUsage, root.Version = cobra.ArbitraryArgs, true, true, version.Version
	with(root, `Drover runs code on a herd of machines: jobs (with Nomad's job files and API), executions in warm runners, a fleet.

Flags may be written with one dash: -address is --address. Commands ask the agent at -address, DROVER_ADDR or NOMAD_ADDR.
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no such thing, 4 a job could not be placed in full, 130 Ctrl-C
(143 SIGTERM, 129 SIGHUP); commands that run a program exit with its code.`, "drover agent -dev -demo\ndrover doctor\ndrover job init && drover job run example.nomad.hcl\ndrover env put scratch -image host && drover run scratch -- uname -a")
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), "{{if .HasAvailableSubCommands}}\n  {{.CommandPath}} [command]{{end}}", "", 1))
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return drover.Errorf(drover.Invalid, "%w; '%s -help' lists the flags", err, c.CommandPath())
	})
	root.AddCommand(a.agentCommand(), a.benchCommand(), a.benchFillCommand(), a.doctorCommand(), a.versionCommand())
	for _, c := range []*cobra.Command{
		a.jobCommand(), a.allocCommand(), a.nodeCommand(), a.evalCommand(), a.deploymentCommand(), a.namespaceCommand(),
		a.operatorCommand(), a.systemCommand(), a.serverCommand(), a.statusCommand(), a.eventCommand(), a.monitorCommand(),
		a.agentInfoCommand(), a.envCommand(), a.runCommand(), a.runnerCommand(), a.fleetCommand(),
	} {
		root.AddCommand(a.remote(c))
	}
	return root
}

func (a *App) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.Out, "Drover %s (Nomad API %s)\n", version.Version, version.Nomad)
			return err
		},
	}
}

// doubleDashes lets people write flags as Nomad's users do, with one dash: -dev, -config=x. What stands behind the
// first word of a command that takes another program's arguments, and behind --, is left alone.
func doubleDashes(root *cobra.Command, args []string) []string {
	out := make([]string, 0, len(args))
	cmd, value := root, false // value: this word is the value of the flag before it
	named := false            // the word before a program's came
	for i, arg := range args {
		switch {
		case value:
			value = false
			out = append(out, arg)
			continue
		case arg == "--":
			return append(out, args[i:]...)
		case len(arg) > 1 && arg[0] == '-':
			arg, value = dashed(cmd, arg)
			out = append(out, arg)
			continue
		}
		sub, program := child(cmd, arg), cmd.Annotations[passThrough]
		switch {
		case sub != nil:
			cmd = sub
		case program == afterFirst:
			return append(out, args[i:]...)
		case program == afterFlags && named:
			return append(append(out, "--"), args[i:]...)
		}
		named = sub == nil
		out = append(out, arg)
	}
	return out
}

// dashed writes one flag with two dashes if it has a long name, and tells whether the next word is its value.
func dashed(cmd *cobra.Command, arg string) (flag string, value bool) {
	name, _, assigned := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	if name == "" {
		return arg, false // the parser says what is wrong
	}
	_ = cmd.InheritedFlags() // merges the parents' flags into the command's
	f := cmd.Flag(name)
	if f == nil && len(name) == 1 {
		f = cmd.Flags().ShorthandLookup(name)
	} else if arg[1] != '-' && (f != nil || cmd.Flags().ShorthandLookup(name[:1]) == nil) {
		arg = "-" + arg // also an unknown one, which is then named in the error
	}
	return arg, f != nil && f.NoOptDefVal == "" && !assigned
}

// passThrough marks commands whose words after the first belong to another program: all of them, or those that follow
// the command's own flags.
const (
	passThrough = "pass-through"
	afterFirst  = "after the first word"
	afterFlags  = "after the first word and flags"
)

func child(cmd *cobra.Command, name string) *cobra.Command {
	for _, c := range cmd.Commands() {
		if c.Name() == name || c.HasAlias(name) {
			return c
		}
	}
	return nil
}
