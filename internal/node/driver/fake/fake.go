package fake

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
)

// MockName is the name under which test suites for Nomad know such a driver.
const MockName = "mock_driver"

// Config configures a driver.
type Config struct {
	Name  string // default MockName
	Clock clock.Clock
	Log   *slog.Logger
	World *World // the tasks; drivers that share it find each other's. nil: a new one
}

// World holds tasks. It outlives drivers, as processes outlive agents.
type World struct {
	mu    sync.Mutex
	tasks map[string]*task // by State.ID; guarded by mu
}

// NewWorld returns an empty world.
func NewWorld() *World { return &World{tasks: map[string]*task{}} }

// Running returns how many tasks run.
func (w *World) Running() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, t := range w.tasks {
		if !t.over() {
			n++
		}
	}
	return n
}

// Left returns the ids of tasks that were not destroyed.
func (w *World) Left() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ids []string
	for id := range w.tasks {
		ids = append(ids, id)
	}
	return ids
}

// Lose ends a task without an exit, as a machine's restart does: it cannot be attached to.
func (w *World) Lose(id string) {
	w.mu.Lock()
	t := w.tasks[id]
	delete(w.tasks, id)
	w.mu.Unlock()
	if t != nil {
		t.end(driver.Exit{Code: 137, Signal: 9, Err: driver.ErrGone})
	}
}

// End ends a task with an exit code, as if its program had ended.
func (w *World) End(id string, exit driver.Exit) {
	w.mu.Lock()
	t := w.tasks[id]
	w.mu.Unlock()
	if t != nil {
		t.end(exit)
	}
}

// Driver starts tasks in a world.
type Driver struct {
	name  string
	clock clock.Clock
	world *World
}

var _ driver.Driver = (*Driver)(nil)

// New returns a driver.
func New(cfg Config) *Driver {
	if cfg.Name == "" {
		cfg.Name = MockName
	}
	if cfg.World == nil {
		cfg.World = NewWorld()
	}
	return &Driver{name: cfg.Name, clock: cfg.Clock, world: cfg.World}
}

// World returns the driver's world.
func (d *Driver) World() *World { return d.world }

// Name returns the configured name.
func (d *Driver) Name() string { return d.name }

// Fingerprint is always healthy.
func (d *Driver) Fingerprint(context.Context) drover.DriverInfo {
	return drover.DriverInfo{
		Detected: true, Healthy: true, HealthDescription: "Healthy", UpdateTime: d.clock.Now(),
		Attributes: map[string]string{"driver." + d.name: "1"},
	}
}

// Start starts a task, after start_block_for, unless start_error is set. Errors: *driver.StartError.
func (d *Driver) Start(ctx context.Context, spec driver.Spec) (driver.Handle, error) {
	o, err := parse(spec.Config)
	if err != nil {
		return nil, &driver.StartError{Err: err}
	}
	if o.startBlockFor > 0 && !clock.Sleep(ctx, d.clock, o.startBlockFor) {
		return nil, &driver.StartError{Recoverable: true, Err: context.Cause(ctx)}
	}
	if o.startError != "" {
		return nil, &driver.StartError{Recoverable: o.startErrorRecoverable, Err: drover.Errorf(drover.Invalid, "%s", o.startError)}
	}
	t := newTask(d, spec, o)
	// The world knows the task before it runs, so that a task which ends at once can still be attached to.
	d.world.mu.Lock()
	d.world.tasks[spec.ID] = t
	d.world.mu.Unlock()
	t.start()
	return t, nil
}

// Attach finds a task again. Errors: driver.ErrGone.
func (d *Driver) Attach(_ context.Context, state driver.State) (driver.Handle, error) {
	d.world.mu.Lock()
	defer d.world.mu.Unlock()
	t := d.world.tasks[state.ID]
	if t == nil {
		return nil, driver.ErrGone
	}
	return t, nil
}

// forever is how long a task without an end of its own runs.
const forever = time.Duration(1<<63 - 1)
