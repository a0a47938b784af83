package fake

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
	"github.com/drover-project/drover/network"
	"github.com/drover-project/drover/usage"
)

// task is a task, and the handle on it.
type task struct {
	d         *Driver
	spec      driver.Spec
	options   options
	startedAt time.Time
	done      chan struct{} // closed at the end; exit is set then
	files     *files

	mu        sync.Mutex
	exit      driver.Exit         // guarded by mu until done
	timers    []clock.Timer       // guarded by mu
	execs     map[string]*command // guarded by mu
	signals   []string            // guarded by mu
	destroyed bool                // guarded by mu
}

// The handle has the same optional powers as those of supervised tasks, so that tests above meet no other code paths.
var (
	_ driver.Handle = (*task)(nil)
	_ driver.Execer = (*task)(nil)
	_ driver.Filer  = (*task)(nil)
	_ driver.Meter  = (*task)(nil)
)

// newTask makes a task that does not run yet: start sets its timers once the world knows it.
func newTask(d *Driver, spec driver.Spec, o options) *task {
	return &task{
		d: d, spec: spec, options: o, startedAt: d.clock.Now(), done: make(chan struct{}),
		execs: map[string]*command{}, files: newFiles(d.clock),
	}
}

// start sets the task's timers.
func (t *task) start() {
	t.say("stdout", t.options.stdout, 0)
	t.say("stderr", t.options.stderr, 0)
	run := t.options.runFor
	// A warm runner has no program that could end; only a job that sets run_for, even to 0, wants its end.
	if t.spec.Pool && !t.options.runForSet {
		run = forever
	}
	if run == forever {
		return
	}
	if run <= 0 {
		t.finish()
		return
	}
	t.after(run, t.finish)
}

// finish ends the task as its options say. A signal without a code gives 128 plus the signal, and an error never goes with code 0.
func (t *task) finish() {
	exit := driver.Exit{Code: t.options.exitCode, Signal: t.options.exitSignal, OOMKilled: t.options.oom}
	if exit.Signal != 0 && exit.Code == 0 {
		exit.Code = 128 + exit.Signal
	}
	if t.options.exitErr != "" {
		exit.Err = errors.New(t.options.exitErr)
		exit.Code = max(exit.Code, 1)
	}
	t.end(exit)
}

// after runs f later, unless the task ends before.
func (t *task) after(d time.Duration, f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timers = append(t.timers, t.d.clock.AfterFunc(d, f))
}

// say appends to a log of the task, again and again if asked to; said is how often it did.
func (t *task) say(stream string, s speech, said int) {
	if s.text == "" || t.over() {
		return
	}
	t.write(stream, s.text)
	if said < s.repeat {
		// A pause of 0 still goes through a timer, so many repetitions do not become a deep recursion.
		t.after(max(s.every, time.Nanosecond), func() { t.say(stream, s, said+1) })
	}
}

// NeedsFolders reports whether the task writes logs.
func (d *Driver) NeedsFolders(_ *drover.TaskGroup, t *drover.Task) bool {
	return t.Config["stdout_string"] != nil || t.Config["stderr_string"] != nil
}

// write appends to the first of the log files, opened each time; nothing rotates here.
func (t *task) write(stream, s string) {
	if s == "" || t.spec.Log.Dir == "" || t.spec.Log.Disabled {
		return
	}
	f, err := os.OpenFile(filepath.Join(t.spec.Log.Dir, t.spec.TaskName+"."+stream+".0"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return // a test without the folder does not want logs
	}
	_, _ = f.WriteString(s)
	_ = f.Close()
}

// end ends the task once, and with it its executions.
func (t *task) end(exit driver.Exit) {
	t.mu.Lock()
	if t.over() {
		t.mu.Unlock()
		return
	}
	t.exit = exit
	close(t.done)
	for _, timer := range t.timers {
		timer.Stop()
	}
	t.mu.Unlock()
}

// over reports whether the task has ended. It takes no lock, so it may be called with and without mu.
func (t *task) over() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// State returns what Attach needs.
func (t *task) State() driver.State {
	return driver.State{
		Driver:    t.d.name,
		ID:        t.spec.ID,
		AllocID:   t.spec.AllocID,
		TaskName:  t.spec.TaskName,
		StartedAt: t.startedAt,
		Data:      []byte(`{}`),
	}
}

// Wait returns when the task ended.
func (t *task) Wait(ctx context.Context) (driver.Exit, error) {
	select {
	case <-t.done:
		return t.exit, nil
	case <-ctx.Done():
		return driver.Exit{}, context.Cause(ctx)
	}
}

// Signal notes the signal; KILL, TERM and INT end the task. Errors: Invalid, signal_error, ErrGone.
func (t *task) Signal(_ context.Context, name string) error {
	if t.options.signalError != "" {
		return errors.New(t.options.signalError)
	}
	sig, err := wire.ParseSignal(name)
	if err != nil {
		return err
	}
	if t.over() {
		return driver.ErrGone
	}
	t.mu.Lock()
	t.signals = append(t.signals, name)
	t.mu.Unlock()
	switch sig {
	case syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT:
		t.end(driver.Exit{Code: 128 + int(sig), Signal: int(sig)})
	default:
	}
	return nil
}

// Stop ends the task after kill_after, or hard after the timeout.
func (t *task) Stop(ctx context.Context, signal string, timeout time.Duration) error {
	sig := syscall.SIGTERM
	if signal != "" {
		var err error
		if sig, err = wire.ParseSignal(signal); err != nil {
			return err
		}
	}
	if t.options.killAfter > timeout {
		sig = syscall.SIGKILL
	}
	exit := driver.Exit{Code: 128 + int(sig), Signal: int(sig)}
	if d := min(t.options.killAfter, timeout); d > 0 {
		// The program takes this long to obey, as mock_driver's kill_after says; the caller waits for it below.
		t.after(d, func() { t.end(exit) })
	} else {
		t.end(exit)
	}
	_, err := t.Wait(ctx)
	return err
}

// Destroy ends the task and takes it out of the world. Idempotent.
func (t *task) Destroy(context.Context) error {
	t.end(driver.Exit{Code: 137, Signal: 9})
	t.d.world.mu.Lock()
	defer t.d.world.mu.Unlock()
	if t.d.world.tasks[t.spec.ID] == t {
		delete(t.d.world.tasks, t.spec.ID)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.destroyed = true
	return nil
}

// Network returns nil: there is none.
func (t *task) Network() *network.Status { return nil }

// Files are the task's, in memory.
func (t *task) Files() execution.Files { return t.files }

// Usage is always the same. Errors: ErrGone.
func (t *task) Usage(context.Context) (*usage.TaskResourceUsage, error) {
	if t.over() {
		return nil, driver.ErrGone
	}
	return &usage.TaskResourceUsage{
		Timestamp: t.d.clock.Now().UnixNano(),
		ResourceUsage: &usage.ResourceUsage{
			MemoryStats: &usage.MemoryStats{RSS: 1 << 20, Measured: []string{"RSS"}},
			CpuStats:    &usage.CpuStats{Percent: 1, Measured: []string{"Percent"}}, DeviceStats: []*usage.DeviceGroupStats{},
		},
		Pids: map[string]*usage.ResourceUsage{},
	}, nil
}
