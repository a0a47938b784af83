package allocrunnertest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/wake"
	"github.com/drover-project/drover/network"
	"github.com/drover-project/drover/usage"
)

// Driver is the world in which the tasks run.
type Driver struct {
	Clock clock.Clock
	// OnStart, if set, may refuse or delay a start. It is called without a lock.
	OnStart func(ctx context.Context, spec driver.Spec) error
	// Instant tasks end with 0 as soon as they are started.
	Instant bool

	mu      sync.Mutex // guards what follows
	tasks   map[string]*Task
	journal []string
	samples int
	changed wake.Broadcast
}

// New returns an empty world.
func New(c clock.Clock) *Driver {
	return &Driver{Clock: c, tasks: map[string]*Task{}}
}

// Task is a started task.
type Task struct {
	world *Driver
	Spec  driver.Spec
	At    time.Time
	// Stubborn: Stop needs its whole timeout, then kills.
	Stubborn bool

	ended chan struct{}
	once  sync.Once
	exit  driver.Exit
}

// Name is the driver's.
func (d *Driver) Name() string { return "fake" }

// Fingerprint is always well.
func (d *Driver) Fingerprint(context.Context) drover.DriverInfo {
	return drover.DriverInfo{Detected: true, Healthy: true, Attributes: map[string]string{"driver.fake.colour": "blue"}}
}

// Validate refuses the key "bad".
func (d *Driver) Validate(t *drover.Task) error {
	if _, ok := t.Config["bad"]; ok {
		return drover.Errorf(drover.Invalid, "config.bad: is not known")
	}
	return nil
}

// Start starts a task.
func (d *Driver) Start(ctx context.Context, spec driver.Spec) (driver.Handle, error) {
	if d.OnStart != nil {
		if err := d.OnStart(ctx, spec); err != nil {
			return nil, err
		}
	}
	t := &Task{world: d, Spec: spec, At: d.Clock.Now(), ended: make(chan struct{}), Stubborn: spec.Config["stubborn"] == true}
	d.mu.Lock()
	d.tasks[spec.ID] = t
	d.mu.Unlock()
	d.note("start " + spec.TaskName)
	if d.Instant {
		t.End(driver.Exit{})
	}
	return t, nil
}

// Attach finds a task of an earlier agent.
func (d *Driver) Attach(_ context.Context, s driver.State) (driver.Handle, error) {
	d.mu.Lock()
	t := d.tasks[s.ID]
	d.mu.Unlock()
	if t == nil {
		return nil, driver.ErrGone
	}
	d.note("attach " + s.TaskName)
	return t, nil
}

func (d *Driver) note(line string) {
	d.mu.Lock()
	d.journal = append(d.journal, line)
	d.changed.Send()
	d.mu.Unlock()
}

// Journal returns what happened: "start x", "stop x", "end x", "destroy x", "attach x", "signal x HUP".
func (d *Driver) Journal() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.journal...)
}

// Lose makes all tasks vanish without an exit, as after a reboot.
func (d *Driver) Lose() {
	d.mu.Lock()
	clear(d.tasks)
	d.mu.Unlock()
}

// Running returns the one running task of that name, nil if there is none; two are a breach.
func (d *Driver) Running(name string) *Task {
	d.mu.Lock()
	defer d.mu.Unlock()
	var found *Task
	for _, t := range d.tasks {
		select {
		case <-t.ended:
			continue
		default:
		}
		if t.Spec.TaskName == name {
			if found != nil {
				panic(fmt.Sprintf("%s runs twice: %s and %s", name, found.Spec.ID, t.Spec.ID))
			}
			found = t
		}
	}
	return found
}

// AwaitRunning waits until a task of that name runs.
func (d *Driver) AwaitRunning(ctx context.Context, name string) (*Task, error) {
	for {
		d.mu.Lock()
		changed := d.changed.C()
		d.mu.Unlock()
		if t := d.Running(name); t != nil {
			return t, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for %s: %w", name, ctx.Err())
		}
	}
}

// End ends the task by itself.
func (t *Task) End(x driver.Exit) {
	t.once.Do(func() {
		t.exit = x
		t.world.note("end " + t.Spec.TaskName)
		close(t.ended)
	})
}

// State says how to find it.
func (t *Task) State() driver.State {
	return driver.State{
		Driver: "fake", ID: t.Spec.ID, AllocID: t.Spec.AllocID, TaskName: t.Spec.TaskName, StartedAt: t.At, Data: json.RawMessage(`{}`),
	}
}

// Wait waits for the end.
func (t *Task) Wait(ctx context.Context) (driver.Exit, error) {
	select {
	case <-t.ended:
		return t.exit, nil
	case <-ctx.Done():
		return driver.Exit{}, ctx.Err()
	}
}

// Signal notes the signal.
func (t *Task) Signal(_ context.Context, name string) error {
	t.world.note("signal " + t.Spec.TaskName + " " + name)
	return nil
}

// Stop ends the task, a stubborn one after the timeout.
func (t *Task) Stop(ctx context.Context, _ string, timeout time.Duration) error {
	t.world.note("stop " + t.Spec.TaskName)
	if !t.Stubborn {
		t.End(driver.Exit{Code: 143, Signal: 15})
		return nil
	}
	timer := t.world.Clock.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-timer.C():
		t.End(driver.Exit{Code: 137, Signal: 9})
	case <-t.ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// Destroy frees it.
func (t *Task) Destroy(context.Context) error {
	t.End(driver.Exit{Code: 137, Signal: 9})
	t.world.mu.Lock()
	_, there := t.world.tasks[t.Spec.ID]
	delete(t.world.tasks, t.Spec.ID)
	t.world.mu.Unlock()
	if there && !t.world.Instant {
		t.world.note("destroy " + t.Spec.TaskName)
	}
	return nil
}

// Network has none.
func (t *Task) Network() *network.Status { return nil }

// Usage is a constant; it is counted.
func (t *Task) Usage(context.Context) (*usage.TaskResourceUsage, error) {
	t.world.mu.Lock()
	t.world.samples++
	t.world.mu.Unlock()
	return &usage.TaskResourceUsage{
		Timestamp: t.world.Clock.Now().UnixNano(),
		ResourceUsage: &usage.ResourceUsage{
			MemoryStats: &usage.MemoryStats{RSS: 10, Measured: []string{"RSS"}}, CpuStats: &usage.CpuStats{Percent: 5},
		},
	}, nil
}

// Samples returns how often a task's usage was read.
func (d *Driver) Samples() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.samples
}
