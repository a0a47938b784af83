package taskrunner_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/node/allocdir"
	"github.com/drover-project/drover/internal/node/allocrunner/allocrunnertest"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/hook"
	"github.com/drover-project/drover/internal/node/localstate"
	"github.com/drover-project/drover/internal/node/taskmachine"
	"github.com/drover-project/drover/internal/node/taskrunner"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// step is a prestart hook of the tests.
type step struct {
	name string
	once bool
	do   func(ctx context.Context, r *hook.Request) error
}

func (s step) Name() string { return s.name }
func (s step) Once() bool   { return s.once }
func (s step) Prestart(ctx context.Context, r *hook.Request) error {
	return s.do(ctx, r)
}

// bundle is one task with a driver and a store, and the loop that applies its events: settle.
type bundle struct {
	t      *testing.T
	world  *allocrunnertest.Driver
	state  *localstate.Memory
	shared *taskrunner.Shared
	cfg    taskrunner.Config
	runner *taskrunner.Runner
	events chan taskmachine.Event
	end    context.CancelFunc
}

// newBundle is called inside of a synctest bubble. The task is of a batch job with one attempt after a second.
func newBundle(t *testing.T) *bundle {
	root := allocdir.NewRoot(t.TempDir())
	require.NoError(t, root.Prepare())
	job := &drover.Job{ID: "j", Type: "batch", TaskGroups: []*drover.TaskGroup{{
		Name: "g", Tasks: []*drover.Task{{Name: "main", Driver: "fake", Config: map[string]any{}}},
		RestartPolicy: &drover.RestartPolicy{Attempts: new(1), Interval: new(time.Hour), Delay: new(time.Second), Mode: "fail"},
	}}}
	job.Canonicalize()
	alloc := &drover.Allocation{ID: id.NewSeeded(7).New(), Name: "j.g[0]", JobID: "j", Job: job, TaskGroup: "g"}
	dir, err := root.Dir(alloc.ID)
	require.NoError(t, err)
	b := &bundle{t: t, world: allocrunnertest.New(clock.Wall{}), state: localstate.NewMemory(), events: make(chan taskmachine.Event, 100)}
	b.shared = &taskrunner.Shared{
		Node: func() *drover.Node { return &drover.Node{ID: "n"} }, Drivers: map[string]driver.Driver{"fake": b.world},
		Clock: clock.Wall{}, IDs: id.NewSeeded(1), Log: slog.New(slog.DiscardHandler), State: b.state,
		Slots: make(chan struct{}, 2), Turn: make(chan struct{}, 1), MaxKillTimeout: time.Minute,
	}
	require.NoError(t, b.state.Commit(t.Context(), localstate.PutAlloc(alloc)))
	group := job.TaskGroups[0]
	b.cfg = taskrunner.Config{
		Shared: b.shared, Alloc: alloc, Group: group, Task: group.Tasks[0], Dir: dir,
		Post: func(e taskmachine.Event) { b.events <- e },
	}
	return b
}

// fresh makes the runner of a task that was just received, and starts it.
func (b *bundle) fresh() *bundle {
	b.live(taskrunner.New(b.cfg))
	require.NoError(b.t, b.state.Commit(b.t.Context(), localstate.PutTask(b.cfg.Alloc.ID, "main", b.runner.Record())))
	b.apply(taskmachine.Go{})
	return b
}

func (b *bundle) live(r *taskrunner.Runner) {
	life, end := context.WithCancel(context.Background())
	b.runner, b.end = r, end
	r.Start(life)
	b.t.Cleanup(b.leave)
}

// leave ends the agent, not the task.
func (b *bundle) leave() {
	b.end()
	b.runner.Wait()
}

// restored is the runner that the next agent makes of what is stored. It returns what Recover says.
func (b *bundle) restored() taskmachine.Event {
	b.leave()
	return b.recovered(b.stored())
}

func (b *bundle) recovered(record localstate.Task) taskmachine.Event {
	b.live(taskrunner.Restore(b.cfg, record))
	return b.runner.Recover(b.t.Context())
}

// stored is what the store has of the task.
func (b *bundle) stored() localstate.Task {
	records, err := b.state.Load()
	require.NoError(b.t, err)
	require.Len(b.t, records, 1)
	return records[0].Tasks["main"]
}

// apply applies the event and all that follow from it, until nothing happens without time.
func (b *bundle) apply(e taskmachine.Event) {
	b.runner.Apply(e)
	b.settle()
}

func (b *bundle) settle() {
	for {
		synctest.Wait()
		select {
		case e := <-b.events:
			b.runner.Apply(e)
		default:
			return
		}
	}
}

// after lets time pass.
func (b *bundle) after(d time.Duration) {
	time.Sleep(d) // of the bubble
	b.settle()
}

func (b *bundle) phase() taskmachine.Phase { return b.runner.Status().Phase }

func (b *bundle) history() string {
	var kinds []string
	for _, e := range b.runner.Status().State.Events {
		kinds = append(kinds, e.Type)
	}
	return strings.Join(kinds, ", ")
}

// last is the newest event of the task's history.
func (b *bundle) last() *drover.TaskEvent {
	events := b.runner.Status().State.Events
	return events[len(events)-1]
}

// in runs a test in a bubble.
func in(t *testing.T, test func(t *testing.T, b *bundle)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newBundle(t)) })
}
