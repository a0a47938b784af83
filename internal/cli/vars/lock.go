package vars

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/secrets"
)

// lockFlags are those of "drover var lock".
type lockFlags struct {
	ttl, delay time.Duration
	retries    int
	shell      bool
	verbose    bool
}

const (
	defaultTTL = 15 * time.Second
	// killAfter is how long the command has to end when it is to.
	killAfter = 5 * time.Second
	// retryPause is how long it is waited before a lock that somebody holds is tried for again.
	retryPause = time.Second
)

// lockCommand is "drover var lock".
func lockCommand(app *term.App) *cobra.Command {
	f := &lockFlags{}
	run := func(ctx context.Context, c *api.Client, args []string) error {
		if f.ttl < time.Second || f.delay < 0 || f.retries < 0 {
			return drover.Errorf(drover.Invalid, "-ttl, -delay and -max-retry: want at least 1s, 0s and 0")
		}
		h, err := f.acquire(ctx, app, c, args[0])
		if err != nil {
			return err
		}
		defer h.release(ctx)
		return h.run(ctx, args[1:])
	}
	c := term.NomadCommand(app, "lock PATH COMMAND [ARG...]", "Run a command while a variable is locked", 2, 10_000, run)
	term.Describe(c, `
Locks the variable, runs the command, and gives the lock back at its end; the command's exit code is ours. The variable is made if it
is not there. The lock is renewed while the command runs. If it is lost, the command is ended: SIGTERM, and SIGKILL 5 seconds later.`,
		`drover var lock nomad/jobs/backup ./backup.sh
drover var lock -ttl 1m -max-retry 100 -shell=false locks/deploy make deploy`)
	fl := c.Flags()
	fl.SetInterspersed(false) // the command's flags are its own
	fl.DurationVar(&f.ttl, "ttl", defaultTTL, "how long the lock holds without being renewed")
	fl.DurationVar(&f.delay, "delay", defaultTTL, "how long nobody gets it after it was lost")
	fl.IntVar(&f.retries, "max-retry", 5, "how often a lock that somebody holds is tried for again, once a second")
	fl.BoolVar(&f.shell, "shell", true, "run the command by /bin/sh -c")
	fl.BoolVar(&f.verbose, "verbose", false, "tell on stderr what happens to the lock")
	return c
}

// held is a lock that we hold.
type held struct {
	*lockFlags
	app    *term.App
	client *api.Client
	path   string
	lock   *secrets.VariableLock
}

func (h *held) say(format string, args ...any) {
	if h.verbose {
		fmt.Fprintf(h.app.Err, format+"\n", args...)
	}
}

// put carries out an operation of the lock.
func (h *held) put(ctx context.Context, op string, v *secrets.Variable) (out secrets.Variable, err error) {
	v.Path = strings.Trim(h.path, " /")
	err = h.client.Put(ctx, varPath(h.path), url.Values{op: {""}}, v, &out)
	return out, err
}

// acquire gets the lock. Errors: Conflict while somebody holds it; the API's.
func (f *lockFlags) acquire(ctx context.Context, app *term.App, c *api.Client, path string) (*held, error) {
	h := &held{lockFlags: f, app: app, client: c, path: path}
	for try := 0; ; try++ {
		v := &secrets.Variable{VariableMetadata: secrets.VariableMetadata{Lock: &secrets.VariableLock{
			TTL: f.ttl.String(), LockDelay: f.delay.String(),
		}}}
		got, err := h.put(ctx, "lock-acquire", v)
		switch {
		case err == nil && got.Lock == nil:
			return nil, drover.Errorf(drover.Internal, "the answer has no lock")
		case err == nil:
			h.lock = got.Lock
			h.say("Locked %s.", path)
			return h, nil
		case drover.CodeOf(err) != drover.Conflict:
			return nil, err
		case try >= f.retries:
			return nil, drover.Errorf(drover.Conflict, "somebody else holds the lock of %s", path)
		}
		h.say("Somebody else holds the lock of %s, trying again.", path)
		if !pause(ctx, app.Clock, retryPause) {
			return nil, context.Cause(ctx)
		}
	}
}

// pause reports whether the time passed.
func pause(ctx context.Context, c clock.Clock, d time.Duration) bool {
	clock.Sleep(ctx, c, d)
	return ctx.Err() == nil
}

// mine is the variable with our lock.
func (h *held) mine() *secrets.Variable {
	return &secrets.Variable{VariableMetadata: secrets.VariableMetadata{Lock: &secrets.VariableLock{ID: h.lock.ID}}}
}

// release gives the lock back, also when ctx has ended.
func (h *held) release(ctx context.Context) {
	ctx, cancel := h.app.Clock.WithTimeout(context.WithoutCancel(ctx), killAfter)
	defer cancel()
	if _, err := h.put(ctx, "lock-release", h.mine()); err != nil {
		h.say("The lock of %s was not given back: %v", h.path, conflict(err))
		return
	}
	h.say("Gave the lock of %s back.", h.path)
}

// errLost ends the command.
var errLost = drover.Errorf(drover.Conflict, "the lock was lost: the command was ended")

// keep renews the lock until ctx ends. It returns errLost when it is lost, or may be.
func (h *held) keep(ctx context.Context) error {
	good := h.app.Clock.Now()
	for pause(ctx, h.app.Clock, h.ttl/3) {
		asked := h.app.Clock.Now()
		limit, cancel := h.app.Clock.WithTimeout(ctx, h.ttl/3)
		_, err := h.put(limit, "lock-renew", h.mine())
		cancel()
		switch code := drover.CodeOf(err); {
		case err == nil:
			good = asked
		case ctx.Err() != nil: // the command has ended
		case code == drover.Conflict, code == drover.Forbidden, code == drover.NotFound, h.app.Clock.Now().Sub(good) > h.ttl*2/3:
			h.say("The lock of %s was lost: %v", h.path, err)
			return errLost
		}
	}
	return nil
}

// run runs the command while the lock is held. Errors: errLost; *term.ExitError with the command's code.
func (h *held) run(ctx context.Context, args []string) error {
	if h.shell {
		args = []string{"/bin/sh", "-c", strings.Join(args, " ")}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	kept := make(chan struct{})
	go func() { // ends with ctx
		defer close(kept)
		if err := h.keep(ctx); err != nil {
			cancel(err)
		}
	}()
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Stdin, c.Stdout, c.Stderr = h.app.In, h.app.Out, h.app.Err
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = killAfter
	err := c.Run()
	lost := errors.Is(context.Cause(ctx), errLost)
	cancel(nil)
	<-kept
	var exit *exec.ExitError
	switch {
	case lost:
		return errLost
	case err == nil, errors.Is(err, exec.ErrWaitDelay): // something that it left behind still has its output
		return nil
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return &term.ExitError{Code: exit.ExitCode()}
	case errors.As(err, &exit):
		return &term.ExitError{Code: 128 + int(exit.Sys().(syscall.WaitStatus).Signal())}
	default:
		return fmt.Errorf("running the command: %w", err)
	}
}
