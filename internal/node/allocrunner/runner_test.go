package allocrunner_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/node/allocdir"
	"github.com/drover-project/drover/internal/node/allocrunner"
	"github.com/drover-project/drover/internal/node/allocrunner/allocrunnertest"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/hook"
	"github.com/drover-project/drover/internal/node/localstate"
	"github.com/drover-project/drover/internal/node/taskrunner"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bundle is one allocation on one node, in a bubble of simulated time.
type bundle struct {
	deadly    map[string]bool // tasks in whose hooks the agent stays
	t         *testing.T
	world     *allocrunnertest.Driver
	state     *localstate.Memory
	root      allocdir.Root
	contacted chan struct{}
	mu        sync.Mutex
	updates   []exchange.AllocUpdate // guarded by mu
	cfg       allocrunner.Config
	alloc     *drover.Allocation
	runner    *allocrunner.Runner
	end       context.CancelFunc
	ran       chan struct{}
}

func task(name, hook string, sidecar bool) *drover.Task {
	t := &drover.Task{Name: name, Driver: "fake", Config: map[string]any{}}
	if hook != "" {
		t.Lifecycle = &drover.TaskLifecycle{Hook: hook, Sidecar: sidecar}
	}
	return t
}

func job(kind string, tasks ...*drover.Task) *drover.Job {
	j := &drover.Job{ID: "j", Type: kind, TaskGroups: []*drover.TaskGroup{{Name: "g", Tasks: tasks}}}
	j.Canonicalize()
	return j
}

func newBundle(t *testing.T, j *drover.Job) *bundle {
	b := &bundle{
		t: t, world: allocrunnertest.New(clock.Wall{}), state: localstate.NewMemory(), root: allocdir.NewRoot(t.TempDir()),
		contacted: make(chan struct{}),
	}
	close(b.contacted)
	require.NoError(t, b.root.Prepare())
	b.alloc = &drover.Allocation{
		ID: id.NewSeeded(7).New(), Name: "j.g[0]", JobID: "j", Job: j, TaskGroup: "g", CreateTime: time.Now().UnixNano(), DesiredStatus: "run",
		ClientStatus: "pending", AllocModifyIndex: 1,
	}
	b.boot()
	return b
}

// boot makes the agent's parts, as after a restart.
func (b *bundle) boot() {
	b.cfg = allocrunner.Config{
		Contacted: b.contacted,
		Report: func(u exchange.AllocUpdate) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.updates = append(b.updates, u)
		},
		Shared: &taskrunner.Shared{
			Node: func() *drover.Node { return &drover.Node{ID: "n"} }, Drivers: map[string]driver.Driver{"fake": b.world},
			Hooks: append(hook.Standard(hook.Settings{}), deadly{b.deadly}),
			Clock: clock.Wall{}, IDs: id.Random{},
			Log: slog.New(slog.DiscardHandler), State: b.state, Slots: make(chan struct{}, 4), Turn: make(chan struct{}, 1),
			MaxKillTimeout: 30 * time.Second,
		},
	}
}

func (b *bundle) dir() allocdir.Dir {
	d, err := b.root.Dir(b.alloc.ID)
	require.NoError(b.t, err)
	return d
}

func (b *bundle) start() *bundle {
	r, err := allocrunner.New(b.cfg, b.alloc, b.dir())
	require.NoError(b.t, err)
	b.run(r)
	return b
}

func (b *bundle) run(r *allocrunner.Runner) {
	ctx, cancel := context.WithCancel(context.Background())
	b.runner, b.end, b.ran = r, cancel, make(chan struct{})
	go func() { // ends with the test
		r.Run(ctx)
		close(b.ran)
	}()
	b.t.Cleanup(b.leave)
	synctest.Wait()
}

// leave ends the agent, not the tasks.
func (b *bundle) leave() {
	b.end()
	<-b.ran
}

// restart is an agent's restart.
func (b *bundle) restart() { b.again(false) }

// again is an agent's restart after its end or its death.
func (b *bundle) again(died bool) {
	b.leave()
	b.contacted = make(chan struct{})
	b.boot()
	b.cfg.Shared.Died = died
	records, err := b.state.Load()
	require.NoError(b.t, err)
	require.Len(b.t, records, 1)
	r, err := allocrunner.Restore(b.cfg, records[0], b.dir())
	require.NoError(b.t, err)
	b.run(r)
}

func (b *bundle) endTask(name string, x driver.Exit) {
	running := b.world.Running(name)
	require.NotNil(b.t, running, "%s does not run: %v", name, b.world.Journal())
	running.End(x)
	synctest.Wait()
}

func (b *bundle) stop() {
	a := *b.alloc
	a.DesiredStatus, a.AllocModifyIndex = drover.AllocDesiredStop, a.AllocModifyIndex+1
	b.alloc = &a
	b.runner.Update(&a)
	synctest.Wait()
}

func (b *bundle) sleep(d time.Duration) {
	time.Sleep(d) // simulated
	synctest.Wait()
}

// told is all that was reported so far.
func (b *bundle) told() []exchange.AllocUpdate {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.updates)
}

func (b *bundle) last() exchange.AllocUpdate { return b.runner.View().Update }

func (b *bundle) journal() string {
	return strings.Join(slices.DeleteFunc(b.world.Journal(), func(s string) bool { return strings.HasPrefix(s, "destroy") }), ", ")
}

func (b *bundle) events(task string) string {
	var out []string
	for _, e := range b.last().TaskStates[task].Events {
		out = append(out, e.Type)
	}
	return strings.Join(out, ", ")
}

func bubble(t *testing.T, f func(t *testing.T)) {
	t.Parallel()
	synctest.Test(t, f)
}

func TestBatchCompletes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBundle(t, job("batch", task("main", "", false))).start()
		require.Equal(t, "running", b.last().ClientStatus)
		require.DirExists(t, b.world.Running("main").Spec.Dirs.Local)
		b.endTask("main", driver.Exit{})
		require.Equal(t, "complete", b.last().ClientStatus)
		require.True(t, b.runner.View().Ended())
		require.Equal(t, "Received, Task Setup, Started, Terminated", b.events("main"))
		require.Equal(t, []string{"start main", "end main", "destroy main"}, b.world.Journal())
		require.NoDirExists(t, b.dir().Task("main").State)
		_, err := b.runner.Handle("")
		require.Equal(t, drover.Gone, drover.CodeOf(err))
		require.Equal(t, drover.Gone, drover.CodeOf(b.runner.Restart(context.Background(), "", false)))
	})
}

func TestLifecycleOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		j := job("batch", task("post", "poststop", false), task("after", "poststart", false), task("main", "", false),
			task("side", "prestart", true), task("init", "prestart", false))
		b := newBundle(t, j).start()
		require.ElementsMatch(t, []string{"start init", "start side"}, b.world.Journal())
		b.endTask("init", driver.Exit{})
		require.Contains(t, b.journal(), "end init, start main, start after")
		require.Equal(t, "running", b.last().ClientStatus)
		b.endTask("after", driver.Exit{})
		b.endTask("main", driver.Exit{})
		require.Contains(t, b.journal(), "end after, end main, stop side, end side, start post")
		require.Equal(t, "running", b.last().ClientStatus)
		require.Contains(t, b.events("side"), "Main Tasks Dead, Killing, Terminated, Killed")
		b.endTask("post", driver.Exit{})
		require.Equal(t, "complete", b.last().ClientStatus)
	})
}

func TestKillOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		leader := task("lead", "", false)
		leader.Leader = true
		leader.Config["stubborn"] = true
		j := job("service", task("side", "prestart", true), task("main", "", false), leader, task("post", "poststop", false))
		j.TaskGroups[0].ShutdownDelay = new(3 * time.Second)
		b := newBundle(t, j).start()
		b.stop()
		require.NotContains(t, b.journal(), "stop")
		b.sleep(3 * time.Second)
		require.Contains(t, b.journal(), "stop lead")
		require.NotContains(t, b.journal(), "stop main")
		b.sleep(5 * time.Second)
		require.Contains(t, b.journal(), "stop lead, end lead, stop main, end main, stop side, end side, start post")
		b.endTask("post", driver.Exit{})
		require.Equal(t, "complete", b.last().ClientStatus)
		require.Contains(t, b.events("side"), "Started, Main Tasks Dead, Killing, Terminated, Killed")
		require.Contains(t, b.events("main"), "Started, Killing, Terminated, Killed")
	})
}

func TestALeaderThatFailsIsASiblingThatFailed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		lead := task("lead", "", false)
		lead.Leader, lead.RestartPolicy = true, &drover.RestartPolicy{Attempts: new(0), Mode: "fail"}
		for _, code := range []int{1, 0} {
			b := newBundle(t, job("batch", lead, task("other", "", false))).start()
			b.endTask("lead", driver.Exit{Code: code})
			want := map[int]string{0: "Leader Task Dead", 1: "Sibling Task Failed"}[code]
			require.Contains(t, b.events("other"), "Started, "+want+", Killing, Terminated, Killed")
		}
	})
}

func TestNoShutdownDelaySkipsTheDelay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		main := task("main", "", false)
		main.ShutdownDelay = time.Hour
		j := job("service", main)
		j.TaskGroups[0].ShutdownDelay = new(time.Hour)
		b := newBundle(t, j).start()
		b.stop()
		b.sleep(time.Hour)
		require.Equal(t, "start main", b.journal())
		a := *b.alloc
		a.DesiredTransition.NoShutdownDelay = new(true)
		a.AllocModifyIndex++
		b.runner.Update(&a)
		synctest.Wait()
		require.Equal(t, "start main, stop main, end main", b.journal())
	})
}

func TestSiblingFailure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		j := job("batch", task("a", "", false), task("b", "", false))
		for _, x := range j.TaskGroups[0].Tasks {
			x.RestartPolicy = &drover.RestartPolicy{Attempts: new(0), Mode: "fail"}
		}
		b := newBundle(t, j).start()
		b.endTask("a", driver.Exit{Code: 3})
		require.Equal(t, "failed", b.last().ClientStatus)
		require.Contains(t, b.events("b"), "Sibling Task Failed, Killing, Terminated, Killed")
		require.False(t, b.last().TaskStates["b"].Failed)
	})
}

func TestRestartsWithinPolicy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		main := task("main", "", false)
		main.RestartPolicy = &drover.RestartPolicy{Attempts: new(1), Interval: new(time.Hour), Delay: new(10 * time.Second), Mode: "fail"}
		b := newBundle(t, job("service", main)).start()
		first := b.world.Running("main").Spec.ID
		b.endTask("main", driver.Exit{Code: 1})
		require.Equal(t, "pending", b.last().ClientStatus)
		b.sleep(9 * time.Second)
		require.Nil(t, b.world.Running("main"))
		b.sleep(4 * time.Second)
		require.NotEqual(t, first, b.world.Running("main").Spec.ID)
		require.Equal(t, uint64(1), b.last().TaskStates["main"].Restarts)
		b.endTask("main", driver.Exit{Code: 1})
		require.Equal(t, "failed", b.last().ClientStatus)
	})
}

func TestPoolTasksAreNeverStartedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		j := job("service", task("runner", "", false))
		j.TaskGroups[0].Pool = &drover.WarmPool{Size: 1}
		b := newBundle(t, j).start()
		require.True(t, b.world.Running("runner").Spec.Pool)
		require.Equal(t, drover.Conflict, drover.CodeOf(b.runner.Restart(context.Background(), "", true)))
		b.endTask("runner", driver.Exit{Code: 137, Signal: 9, OOMKilled: true})
		require.Equal(t, "failed", b.last().ClientStatus)
		b.sleep(time.Hour)
		require.Equal(t, "start runner, end runner", b.journal())
	})
}

func TestMaxRunDuration(t *testing.T) {
	bubble(t, func(t *testing.T) {
		j := job("batch", task("main", "", false), task("post", "poststop", false))
		j.TaskGroups[0].MaxRunDuration = new(time.Minute)
		b := newBundle(t, j).start()
		b.sleep(time.Minute)
		require.Equal(t, "complete", b.last().ClientStatus)
		require.Contains(t, b.last().ClientDescription, "max_run_duration")
		require.Equal(t, "start main, stop main, end main", b.journal())
	})
}

func TestRestartByRequest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBundle(t, job("batch", task("init", "prestart", false), task("main", "", false))).start()
		b.endTask("init", driver.Exit{})
		require.NoError(t, b.runner.Restart(context.Background(), "", false))
		synctest.Wait()
		require.Equal(t, "start init, end init, start main, stop main, end main, start main", b.journal())
		require.Equal(t, drover.Conflict, drover.CodeOf(b.runner.Restart(context.Background(), "init", false)))
		require.Equal(t, drover.NotFound, drover.CodeOf(b.runner.Restart(context.Background(), "nope", false)))
		require.NoError(t, b.runner.Restart(context.Background(), "", true))
		synctest.Wait()
		require.True(t, strings.HasSuffix(b.journal(), "stop main, end main, start init"), b.journal())
		b.endTask("init", driver.Exit{})
		require.Equal(t, "running", b.last().ClientStatus)
		require.NotNil(t, b.world.Running("main"))
		require.Contains(
			t, b.events("main"), "Started, Restart Signaled, Terminated, Restarting, Started, Restart Signaled, Terminated, Restarting, Started",
		)

		require.NoError(t, b.runner.Restart(context.Background(), "", true))
		b.stop()
		require.Equal(t, "complete", b.last().ClientStatus, "a stop during a restart of all wins")
	})
}

func TestBadConfigurationFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		main := task("main", "", false)
		main.Config["bad"] = 1
		b := newBundle(t, job("batch", main)).start()
		require.Equal(t, "failed", b.last().ClientStatus)
		require.Contains(t, b.events("main"), "Failed Validation, Not Restarting")
	})
}

func TestUnknownDriverFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		main := task("main", "", false)
		main.Driver = "docker"
		b := newBundle(t, job("batch", main)).start()
		require.Equal(t, "failed", b.last().ClientStatus)
	})
}

func TestStartErrors(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBundle(t, job("batch", task("main", "", false)))
		tries := 0
		b.world.OnStart = func(context.Context, driver.Spec) error {
			if tries++; tries == 1 {
				return &driver.StartError{Recoverable: true, Err: errors.New("busy")}
			}
			return &driver.StartError{Err: errors.New("no such image")}
		}
		b.start()
		require.Equal(t, "pending", b.last().ClientStatus)
		b.sleep(time.Minute)
		require.Equal(t, "failed", b.last().ClientStatus)
		require.Contains(t, b.events("main"), "Driver Failure, Restarting, Driver Failure, Not Restarting")
	})
}

func TestHealth(t *testing.T) {
	bubble(t, func(t *testing.T) {
		j := job("service", task("main", "", false))
		b := newBundle(t, j)
		b.alloc.DeploymentID = "d"
		b.start()
		require.Nil(t, b.last().DeploymentStatus)
		b.sleep(9 * time.Second)
		require.Nil(t, b.last().DeploymentStatus)
		b.sleep(2 * time.Second)
		require.True(t, *b.last().DeploymentStatus.Healthy)
	})
}

func TestUnhealthy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		main := task("main", "", false)
		main.RestartPolicy = &drover.RestartPolicy{Attempts: new(0), Mode: "fail"}
		b := newBundle(t, job("service", main))
		b.alloc.DeploymentID = "d"
		b.start()
		b.endTask("main", driver.Exit{Code: 1})
		require.False(t, *b.last().DeploymentStatus.Healthy)
	})
}

func TestSignal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBundle(t, job("service", task("main", "", false))).start()
		require.NoError(t, b.runner.Signal(context.Background(), "", "SIGHUP"))
		synctest.Wait()
		require.Equal(t, "start main, signal main SIGHUP", b.journal())
		require.Contains(t, b.events("main"), "Signaling")
		require.Equal(t, drover.NotFound, drover.CodeOf(b.runner.Signal(context.Background(), "nope", "HUP")))
	})
}

func TestClientStatus(t *testing.T) {
	t.Parallel()
	dead, failed := &drover.TaskState{State: "dead"}, &drover.TaskState{State: "dead", Failed: true}
	running, pending := &drover.TaskState{State: "running"}, &drover.TaskState{State: "pending"}
	for _, test := range []struct {
		states []*drover.TaskState
		want   string
	}{
		{[]*drover.TaskState{dead, dead}, "complete"},
		{[]*drover.TaskState{dead, failed, running}, "failed"},
		{[]*drover.TaskState{dead, running, pending}, "running"},
		{[]*drover.TaskState{pending, dead}, "pending"},
		{[]*drover.TaskState{{State: "running", Failed: true}}, "running"},
	} {
		states := map[string]*drover.TaskState{}
		for i, s := range test.states {
			states[string(rune('a'+i))] = s
		}
		got, _ := allocrunner.ClientStatus(states)
		require.Equal(t, test.want, got)
	}
}
