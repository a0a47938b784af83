package term

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/clock"
)

// App is what a command works with: streams, environment, clock, and the agent to ask. It is a plain value, so that
// tests give their own. The commands are in the packages of their families.
type App struct {
	In     io.Reader
	Out    io.Writer
	Err    io.Writer
	Getenv func(string) string
	Clock  clock.Clock
	Target api.Target // as flags gave it; the environment fills the rest
}

// Resolved is the target with what flags left open filled from the environment.
func (a *App) Resolved() api.Target { return a.Target.Resolved(a.Getenv) }

// Nomad returns the client of the Nomad API. Errors: Invalid for settings that cannot be used.
func (a *App) Nomad() (*api.Client, error) { return api.New(a.Resolved()) }

// Native returns the client of Drover's own API. Errors: Invalid for settings that cannot be used.
func (a *App) Native() (*client.Client, error) { return api.NewNative(a.Resolved()) }

// Console returns the terminal behind In and Out. It is nil if either is none, as in a pipe: a program that got a
// terminal then would mix line ends and echo into the data.
func (a *App) Console() *Console {
	in, ok := a.In.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return nil
	}
	out, ok := a.Out.(*os.File)
	if !ok || !term.IsTerminal(int(out.Fd())) {
		return nil
	}
	return &Console{in: in, out: out}
}
