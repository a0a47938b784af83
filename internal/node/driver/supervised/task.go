package supervised

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/grouped"
	"github.com/drover-project/drover/internal/node/supervisor"
)

// Config of a task's connection.
type Config struct {
	// Connect connects to the task's supervisor again. Errors: driver.ErrGone once it is no more.
	Connect func(ctx context.Context) (*supervisor.Client, error)
	// Warm: there is no main task, only the supervisor runs.
	Warm bool
	// OOMKills tells how many processes the kernel killed for the task's memory; nil: it is not known.
	OOMKills func() uint64
}

// At is Config.Connect for a supervisor that listens in the folder.
func At(stateDir string, options func() supervisor.Options) func(context.Context) (*supervisor.Client, error) {
	return func(ctx context.Context) (*supervisor.Client, error) {
		return supervisor.Connect(ctx, supervisor.SocketPath(stateDir), options())
	}
}

// ErrVanished is Exit.Err of a task whose supervisor ended before it told the task's exit, without Stop or Destroy.
var ErrVanished = errors.New("the task ended without an exit code: its supervisor was killed")

// Task is a task under a supervisor. Drivers embed it in their handles. Its methods may be called at once.
type Task struct {
	cfg Config

	mu        sync.Mutex
	client    *supervisor.Client // guarded by mu
	stopped   bool               // Stop or Stopping was called; guarded by mu
	destroyed bool               // guarded by mu
	exit      *driver.Exit       // once it is known; guarded by mu
	notice    func(string)       // nil = nobody; guarded by mu
}

var (
	_ driver.Execer  = (*Task)(nil)
	_ driver.Filer   = (*Task)(nil)
	_ driver.Noticer = (*Task)(nil)
)

// New returns the task that the client, which it owns from now on, is connected to.
func New(cfg Config, client *supervisor.Client) *Task { return &Task{cfg: cfg, client: client} }

// Warm tells whether there is no main task.
func (t *Task) Warm() bool { return t.cfg.Warm }

// Client returns the connection, or a new one if it broke while the supervisor lives. Errors: driver.ErrGone.
func (t *Task) Client(ctx context.Context) (*supervisor.Client, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.destroyed {
		return nil, driver.ErrGone
	}
	select {
	case <-t.client.Done():
	default:
		return t.client, nil
	}
	client, err := t.cfg.Connect(ctx)
	if err != nil {
		return nil, err
	}
	_ = t.client.Close() // it has ended
	t.client = client
	return client, nil
}

// Last returns the connection as it is: it may have ended.
func (t *Task) Last() *supervisor.Client {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.client
}

// StartMain starts the main task, in a group of its own if the task has groups. Errors: the program's, with its name.
func (t *Task) StartMain(ctx context.Context, spec supervisor.TaskSpec, groups *grouped.Groups) error {
	client, err := t.Client(ctx)
	if err != nil {
		return err
	}
	var group supervisor.Group
	if groups.Task != nil {
		made, err := groups.Make(grouped.Main, cgroup.Limits{})
		if err != nil {
			return err
		}
		defer made.Close() // the supervisor has its own by then
		group = made
	}
	if _, err := client.StartTask(ctx, spec, group); err != nil {
		return drover.Errorf(drover.CodeOf(err), "starting %q: %w", spec.Argv[0], err)
	}
	return nil
}

// Wait returns when the task ended; for a warm runner, when its supervisor did.
func (t *Task) Wait(ctx context.Context) (driver.Exit, error) {
	for {
		if exit := t.known(); exit != nil {
			return *exit, nil
		}
		client, err := t.Client(ctx)
		switch {
		case ctx.Err() != nil:
			return driver.Exit{}, context.Cause(ctx)
		case errors.Is(err, driver.ErrGone):
			return t.vanished(), nil
		case err != nil:
			return driver.Exit{}, err
		}
		if err := t.waitOn(ctx, client); err != nil {
			return driver.Exit{}, err
		}
	}
}

// waitOn waits for the exit, which it notes, or for the connection's end.
func (t *Task) waitOn(ctx context.Context, client *supervisor.Client) error {
	if !t.cfg.Warm {
		exit, err := client.WaitTask(ctx, t.Tell)
		if err == nil {
			t.note(exit)
			return nil
		}
		if !errors.Is(err, driver.ErrGone) && ctx.Err() == nil {
			select {
			case <-client.Done():
				return nil
			default:
				return fmt.Errorf("waiting for the task: %w", err)
			}
		}
	}
	select { // the connection's end is told to calls a moment before Done
	case <-client.Done():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// OnNotice implements driver.Noticer.
func (t *Task) OnNotice(notice func(text string)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notice = notice
}

// Tell tells what a person should know of the running task.
func (t *Task) Tell(text string) {
	t.mu.Lock()
	notice := t.notice
	t.mu.Unlock()
	if notice != nil {
		notice(text)
	}
}

// known is the exit if somebody has waited for it before, else nil.
func (t *Task) known() *driver.Exit {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.exit
}

// note keeps the exit, with what only the machine knows: whether the kernel killed for memory.
func (t *Task) note(exit driver.Exit) {
	if exit.Signal == int(syscall.SIGKILL) && t.cfg.OOMKills != nil && t.cfg.OOMKills() > 0 {
		exit.OOMKilled = true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.exit = &exit
}

// vanished is the exit of a task whose supervisor is no more.
func (t *Task) vanished() driver.Exit {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.exit == nil {
		t.exit = &driver.Exit{Code: 128 + int(syscall.SIGKILL), Signal: int(syscall.SIGKILL)}
		if !t.stopped {
			t.exit.Err = ErrVanished
		}
	}
	return *t.exit
}

// Signal signals the main task by name. Errors: Invalid, driver.ErrGone, driver.ErrNotSupported in a warm runner.
func (t *Task) Signal(ctx context.Context, name string) error {
	client, err := t.Client(ctx)
	if err != nil {
		return err
	}
	if t.cfg.Warm {
		return driver.ErrNotSupported
	}
	return client.SignalTask(ctx, name)
}

// Stopping says that the task's end is wanted: a supervisor that is gone is then no fault.
func (t *Task) Stopping() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
}

// Stop asks the main task to end with the signal ("" = SIGTERM), and kills its tree after the timeout. A warm runner has
// nobody to ask: it ends.
func (t *Task) Stop(ctx context.Context, signal string, timeout time.Duration) error {
	t.Stopping()
	client, err := t.Client(ctx)
	switch {
	case errors.Is(err, driver.ErrGone):
		return nil
	case err != nil:
		return err
	case t.cfg.Warm:
		return client.Shutdown(ctx)
	}
	if err := client.StopTask(ctx, signal, timeout); !errors.Is(err, driver.ErrGone) {
		return err
	}
	return nil
}

// End lets the connection go for good, once the supervisor is no more. Idempotent.
func (t *Task) End() {
	t.mu.Lock()
	t.destroyed = true
	client := t.client
	t.mu.Unlock()
	_ = client.Close() // the other end is dead already
}

// Ended tells whether End was called.
func (t *Task) Ended() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.destroyed
}
