package ops

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/term"
)

// clientStateCommand is "drover operator client-state".
func clientStateCommand(app *term.App, archives Archives) *cobra.Command {
	run := func(_ context.Context, app *term.App, args []string) error {
		if archives.Node == nil {
			return drover.Errorf(drover.NotImplemented, "nodes run on Linux only, and so does this")
		}
		path, err := stateFile(args[0])
		if err != nil {
			return err
		}
		if err := archives.Node(path, app.Out); err != nil {
			return drover.Errorf(drover.Invalid, "%w", err)
		}
		return nil
	}
	c := term.Command(app, "client-state FOLDER", "Print what a node remembers of its allocations as JSON", 1, 1, run)
	term.Describe(c, `
FOLDER is the data_dir of an agent that does not run, or the client folder in it. Nothing is changed. What is printed has all that
jobs give their tasks: look at it before you hand it on. Warm runners are left out: they have a file of their own, which ends with them.`,
		"drover operator client-state /var/lib/drover")
	return c
}

// stateFile finds a node's file in its folders. Errors: Invalid if it is in none.
func stateFile(folder string) (string, error) {
	for _, path := range []string{filepath.Join(folder, "client", "state.db"), filepath.Join(folder, "state.db"), folder} {
		if about, err := os.Stat(path); err == nil && about.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", drover.Errorf(drover.Invalid, "there is no client/state.db in %s: name the data_dir of an agent with a node", folder)
}
