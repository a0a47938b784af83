// Package cli is the command line. It uses the HTTP API as everybody does; the agent is given to it as a function.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"drover"
	"drover/internal/config"
	"drover/internal/version"
)

// App is the command line's world.
type App struct {
	In     io.Reader
	Out    io.Writer
	Err    io.Writer
	Getenv func(string) string
	// RunAgent runs an agent until ctx ends; ready is called once its faces are served at addr.
	RunAgent func(ctx context.Context, cfg *config.Agent, logs io.Writer, ready func(addr string)) error
}

// Exit codes that scripts can rely on.
const (
	exitFailure  = 1
	exitUsage    = 2
	exitNotFound = 3
	exitNoPlace  = 4 // a job was registered but not all of it could be placed
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
	if err == nil {
		return 0
	}
	if text := err.Error(); text != "" {
		fmt.Fprintln(a.Err, "Error:", text)
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

func (a *App) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "drover",
		Short:         "Run code on a herd of machines: jobs, executions in warm runners, a fleet",
		SilenceErrors: true, SilenceUsage: true, Version: version.Version,
	}
	root.AddCommand(a.agentCommand(), a.benchCommand(), a.versionCommand())
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
	cmd := root
	for i, arg := range args {
		if arg == "--" {
			return append(out, args[i:]...)
		}
		if len(arg) > 2 && arg[0] == '-' && arg[1] != '-' {
			name, _, _ := strings.Cut(arg[1:], "=")
			if cmd.Flags().Lookup(name) != nil || cmd.InheritedFlags().Lookup(name) != nil || name == "help" || name == "version" {
				arg = "-" + arg
			}
		}
		out = append(out, arg)
		if strings.HasPrefix(arg, "-") {
			continue
		}
		if sub := child(cmd, arg); sub != nil {
			cmd = sub
		} else if cmd.Annotations[passThrough] != "" {
			return append(out, args[i+1:]...)
		}
	}
	return out
}

// passThrough marks commands whose words after the first belong to another program.
const passThrough = "pass-through"

func child(cmd *cobra.Command, name string) *cobra.Command {
	for _, c := range cmd.Commands() {
		if c.Name() == name || c.HasAlias(name) {
			return c
		}
	}
	return nil
}
