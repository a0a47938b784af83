package assignment

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/tenancy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type memoryLog struct {
	mu      sync.Mutex
	fsm     *fsm.FSM
	index   uint64
	updates []*command.UpdateAllocs
	arrived chan struct{} // if not nil, UpdateAllocs sends on arrival
	gate    chan struct{} // and waits for a value
	err     error
}

func (l *memoryLog) Propose(_ context.Context, c command.Command) (uint64, any, error) {
	u, isUpdate := c.(*command.UpdateAllocs)
	if isUpdate && l.gate != nil {
		l.arrived <- struct{}{}
		<-l.gate
	}
	data, err := command.Encode(c)
	if err != nil {
		return 0, nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return 0, nil, l.err
	}
	if isUpdate {
		l.updates = append(l.updates, u)
	}
	l.index++
	result, err := l.fsm.Apply(l.index, data)
	return l.index, result, err
}

// fakeLeader is one.
type fakeLeader struct{ leads bool }

func (fakeLeader) Heartbeat(string) time.Duration { return time.Second }
func (l fakeLeader) Leading() bool                { return l.leads }

type bundle struct {
	*Controller
	store *store.Store
	log   *memoryLog
}

func setup(t *testing.T) *bundle {
	t.Helper()
	st := store.New()
	log := &memoryLog{fsm: fsm.New(st, nil)}
	b := &bundle{store: st, log: log, Controller: New(Deps{
		Log: log, Store: st, Leader: fakeLeader{true}, Clock: clock.Wall{}, IDs: id.Random{}, Logger: slog.New(slog.DiscardHandler),
	})}
	for _, n := range []string{"n1", "n2"} {
		_, err := b.Register(t.Context(), &drover.Node{ID: n, SecretID: "s"})
		require.NoError(t, err)
	}
	return b
}

func (b *bundle) place(t *testing.T, kind, nodeID string, ids ...string) *drover.Job {
	t.Helper()
	return b.placeJob(t, kind, nil, nodeID, ids...)
}

// placeIn places a service of a warm pool.
func (b *bundle) placeIn(t *testing.T, pool *drover.WarmPool, nodeID string, ids ...string) {
	t.Helper()
	b.placeJob(t, drover.JobTypeService, pool, nodeID, ids...)
}

func (b *bundle) placeJob(t *testing.T, kind string, pool *drover.WarmPool, nodeID string, ids ...string) *drover.Job {
	t.Helper()
	j := &drover.Job{ID: kind, Type: kind, TaskGroups: []*drover.TaskGroup{{
		Name: "g", Pool: pool, Tasks: []*drover.Task{{Name: "t", Driver: "fake"}},
	}}}
	j.Canonicalize()
	_, stored, err := b.log.Propose(t.Context(), &command.RegisterJob{Job: j})
	require.NoError(t, err)
	c := command.PlanCommit{Job: stored.(*drover.Job)}
	for _, a := range ids {
		c.Placed = append(c.Placed, &drover.Allocation{ID: a, Namespace: "default", JobID: kind, TaskGroup: "g", NodeID: nodeID})
	}
	_, _, err = b.log.Propose(t.Context(), &command.ApplyPlans{Plans: []command.PlanCommit{c}})
	require.NoError(t, err)
	return stored.(*drover.Job)
}

func update(allocID, status string) []exchange.AllocUpdate {
	return []exchange.AllocUpdate{{ID: allocID, ClientStatus: status}}
}

func TestPull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		ctx := t.Context()
		first, err := b.Pull(ctx, "n1", exchange.Seen{}, time.Minute)
		require.NoError(t, err)
		require.NotZero(t, first.Index)
		start := time.Now()
		same, err := b.Pull(ctx, "n1", exchange.Seen{Index: first.Index}, time.Minute)
		require.NoError(t, err)
		require.Equal(t, first.Index, same.Index)
		require.Equal(t, time.Minute, time.Since(start))

		got := make(chan exchange.Assignment, 1)
		go func() { // ends when something is wanted of the node
			a, _ := b.Pull(ctx, "n1", exchange.Seen{Index: first.Index}, time.Hour)
			got <- a
		}()
		synctest.Wait()
		b.place(t, drover.JobTypeBatch, "n2", "other")
		synctest.Wait()
		require.Empty(t, got, "another node's")
		b.place(t, drover.JobTypeBatch, "n1", "a1", "a2")
		a := <-got
		require.Len(t, a.Allocs, 2)
		require.NotNil(t, a.Allocs[0].Job)

		go func() { // ends with the time
			x, _ := b.Pull(ctx, "n1", exchange.Seen{Index: a.Index}, time.Hour)
			got <- x
		}()
		synctest.Wait()
		require.NoError(t, b.Push(ctx, "n1", update("a1", drover.AllocClientRunning)))
		require.NoError(t, b.Push(ctx, "n1", update("a1", drover.AllocClientComplete)))
		synctest.Wait()
		require.Empty(t, got, "its own updates do not come back")
		x := <-got
		require.Equal(t, a.Index, x.Index)
		require.Len(t, x.Allocs, 1, "what ended is no longer listed")

		_, err = b.Pull(ctx, "n1", exchange.Seen{Index: 1 << 40}, time.Hour)
		require.NoError(t, err, "the node comes from another server: it hears at once what holds here")
		_, err = b.Pull(ctx, "nobody", exchange.Seen{}, time.Hour)
		require.Equal(t, drover.NotFound, drover.CodeOf(err))
		canceled, cancel := context.WithCancel(ctx)
		cancel()
		_, err = b.Pull(canceled, "n1", exchange.Seen{Index: a.Index}, time.Hour)
		require.Equal(t, drover.Canceled, drover.CodeOf(err))
	})
}

func TestPullTellsTheMetaSetAtRuntime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, _, err := b.log.Propose(t.Context(), &command.SetNodeMeta{NodeID: "n1", Meta: map[string]*string{"rack": new("r2"), "old": nil}})
	require.NoError(t, err)
	a, err := b.Pull(t.Context(), "n1", exchange.Seen{}, time.Minute)
	require.NoError(t, err)
	require.Equal(t, map[string]*string{"rack": new("r2"), "old": nil}, a.Meta)
}

// TestPullTellsWhoSignsImages: of the namespaces of the node's allocations.
func TestPullTellsWhoSignsImages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.place(t, drover.JobTypeService, "n1", "a")
	_, _, err := b.log.Propose(t.Context(), &command.UpsertNamespaces{Namespaces: []*tenancy.Namespace{
		{Name: "default", Images: &tenancy.NamespaceImages{SignedBy: []string{"key"}}},
		{Name: "other", Images: &tenancy.NamespaceImages{SignedBy: []string{"another"}}},
	}})
	require.NoError(t, err)
	for node, want := range map[string]map[string][]string{"n1": {"default": {"key"}}, "n2": nil} {
		a, err := b.Pull(t.Context(), node, exchange.Seen{}, time.Minute)
		require.NoError(t, err)
		require.Equal(t, want, a.SignedBy)
	}
}

func TestPushesShareEntries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		ctx := t.Context()
		b.place(t, drover.JobTypeBatch, "n1", "a1", "a2")
		b.place(t, drover.JobTypeBatch, "n2", "a3")
		b.log.arrived, b.log.gate = make(chan struct{}), make(chan struct{})
		done := make(chan error, 3)
		push := func(node, alloc string) {
			go func() { done <- b.Push(ctx, node, update(alloc, drover.AllocClientRunning)) }() // ends when it is stored
			synctest.Wait()
		}
		push("n1", "a1")
		<-b.log.arrived
		push("n1", "a2")
		push("n2", "a3")
		b.log.gate <- struct{}{}
		require.NoError(t, <-done)
		<-b.log.arrived
		b.log.gate <- struct{}{}
		require.NoError(t, <-done)
		require.NoError(t, <-done)
		require.Len(t, b.log.updates, 2, "one at once, the others together")
		for _, a := range []string{"a1", "a2", "a3"} {
			require.Equal(t, drover.AllocClientRunning, b.store.Snapshot().Allocation(a).ClientStatus)
		}
	})
}

func TestPushesOfManyNodesShareEntries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		ctx := t.Context()
		var ids []string
		for i := range 400 {
			ids = append(ids, fmt.Sprint("a", i))
		}
		b.place(t, drover.JobTypeBatch, "n1", ids...)
		done := make(chan error, len(ids))
		for _, id := range ids { // 400 a second, each told on its own
			go func() { done <- b.Push(ctx, "n1", update(id, drover.AllocClientRunning)) }() // ends when it is stored
			clock.Sleep(ctx, clock.Wall{}, 2500*time.Microsecond)
		}
		for range ids {
			require.NoError(t, <-done)
		}
		require.Less(t, len(b.log.updates), 40)
		clock.Sleep(ctx, clock.Wall{}, time.Minute)
		now := time.Now()
		require.NoError(t, b.Push(ctx, "n1", update("a1", drover.AllocClientComplete)))
		require.Equal(t, now, time.Now(), "a lone one waits for nothing")
	})
}

func TestPushFails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.place(t, drover.JobTypeBatch, "n1", "a1")
	b.log.err = drover.Errorf(drover.Unavailable, "no space left")
	require.Equal(t, drover.Unavailable, drover.CodeOf(b.Push(t.Context(), "n1", update("a1", drover.AllocClientRunning))))
	require.Equal(t, drover.NotFound, drover.CodeOf(b.Push(t.Context(), "nobody", update("a1", drover.AllocClientRunning))))
}

// TestANodeThatWasGivenUpRegistersFirst: its reports used to be taken, and each made the scheduler mark the allocation
// unknown once more. The node contradicted that at once: 50 entries a second until the next heartbeat (seed 9791).
func TestANodeThatWasGivenUpRegistersFirst(t *testing.T) {
	t.Parallel()
	for _, status := range []string{drover.NodeStatusDown, drover.NodeStatusDisconnected} {
		b := setup(t)
		b.place(t, drover.JobTypeService, "n1", "a1")
		_, _, err := b.log.Propose(t.Context(), &command.UpdateNodeStatuses{Nodes: []command.NodeStatus{{NodeID: "n1", Status: status}}})
		require.NoError(t, err)
		before := b.store.Index()
		require.Equal(t, drover.NotFound, drover.CodeOf(b.Push(t.Context(), "n1", update("a1", drover.AllocClientRunning))))
		_, err = b.Pull(t.Context(), "n1", exchange.Seen{}, time.Second)
		require.Equal(t, drover.NotFound, drover.CodeOf(err))
		require.Equal(t, before, b.store.Index(), "nothing was stored")

		node := *b.store.Snapshot().Node("n1")
		_, err = b.Register(t.Context(), &node)
		require.NoError(t, err)
		require.NoError(t, b.Push(t.Context(), "n1", update("a1", drover.AllocClientRunning)))
		a, err := b.Pull(t.Context(), "n1", exchange.Seen{}, time.Second)
		require.NoError(t, err)
		require.Len(t, a.Allocs, 1)
	}
}

func TestReaction(t *testing.T) {
	t.Parallel()
	job := func(kind string, pool *drover.WarmPool) *drover.Job {
		return &drover.Job{Type: kind, TaskGroups: []*drover.TaskGroup{{Name: "g", Pool: pool}}}
	}
	alloc := func(change func(*drover.Allocation)) *drover.Allocation {
		a := &drover.Allocation{TaskGroup: "g", ClientStatus: drover.AllocClientRunning, DesiredStatus: drover.AllocDesiredRun}
		if change != nil {
			change(a)
		}
		return a
	}
	stopped := func(a *drover.Allocation) { a.DesiredStatus = drover.AllocDesiredStop }
	claimed := func(a *drover.Allocation) { a.Claim = &drover.Claim{} }
	const complete, failed, running = drover.AllocClientComplete, drover.AllocClientFailed, drover.AllocClientRunning
	tests := map[string]struct {
		alloc  *drover.Allocation
		status string
		job    *drover.Job
		want   string
	}{
		"runs":              {alloc(nil), running, job("service", nil), ""},
		"service failed":    {alloc(nil), failed, job("service", nil), drover.TriggerAllocFailure},
		"service complete":  {alloc(nil), complete, job("service", nil), drover.TriggerAllocFailure},
		"batch complete":    {alloc(nil), complete, job("batch", nil), ""},
		"batch failed":      {alloc(nil), failed, job("batch", nil), drover.TriggerAllocFailure},
		"sysbatch complete": {alloc(nil), complete, job("sysbatch", nil), ""},
		"stopped, complete": {alloc(stopped), complete, job("service", nil), ""},
		"ended before":      {alloc(func(a *drover.Allocation) { a.ClientStatus = failed }), failed, job("service", nil), ""},
		"reconnected": {
			alloc(func(a *drover.Allocation) { a.ClientStatus = drover.AllocClientUnknown }), running,
			job("service", nil), drover.TriggerReconnect,
		},
		"job gone, runs":         {alloc(nil), running, nil, drover.TriggerJobDeregister},
		"job gone, stopping":     {alloc(stopped), running, nil, ""},
		"job gone, ended":        {alloc(nil), complete, nil, ""},
		"warm runner ended":      {alloc(nil), complete, job("service", &drover.WarmPool{}), drover.TriggerAllocFailure},
		"claimed runner ended":   {alloc(claimed), complete, job("service", &drover.WarmPool{}), ""},
		"claimed, under a bound": {alloc(claimed), complete, job("service", &drover.WarmPool{MaxRunners: 2}), drover.TriggerAllocFailure},
		"released, under a bound": {
			alloc(func(a *drover.Allocation) { claimed(a); stopped(a) }), complete,
			job("service", &drover.WarmPool{MaxRunners: 2}), drover.TriggerAllocFailure,
		},
		"warm, scaled down, ended": {alloc(stopped), complete, job("service", &drover.WarmPool{}), ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, reaction(tt.alloc, &exchange.AllocUpdate{ClientStatus: tt.status}, tt.job))
		})
	}
}

func TestEndedWithoutTaskStates(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.place(t, drover.JobTypeService, "n1", "a1")
	at := time.Unix(1000, 0)
	u := exchange.AllocUpdate{ID: "a1", ClientStatus: drover.AllocClientFailed, Time: at.UnixNano()}
	require.NoError(t, b.Push(t.Context(), "n1", []exchange.AllocUpdate{u}))
	task := b.store.Snapshot().Allocation("a1").TaskStates["t"]
	require.Equal(t, drover.TaskStateDead, task.State)
	require.True(t, task.Failed)
	require.True(t, at.Equal(task.FinishedAt))
}

func TestOneEvaluationForEachJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.place(t, drover.JobTypeService, "n1", "a1", "a2")
	require.NoError(t, b.Push(t.Context(), "n1", append(update("a1", drover.AllocClientFailed), update("a2", drover.AllocClientFailed)...)))
	require.Len(t, b.log.updates[0].Evals, 1)
	require.Equal(t, drover.JobTypeService, b.log.updates[0].Evals[0].JobID)
}

func TestHeartbeat(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	r, err := b.Heartbeat(ctx, "n1")
	require.NoError(t, err)
	require.Equal(t, time.Second, r.TTL)
	_, err = b.Heartbeat(ctx, "nobody")
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
	_, _, err = b.log.Propose(ctx, &command.UpdateNodeStatuses{Nodes: []command.NodeStatus{{NodeID: "n1", Status: drover.NodeStatusDown}}})
	require.NoError(t, err)
	_, err = b.Heartbeat(ctx, "n1")
	require.NoError(t, err)
	require.Equal(t, drover.NodeStatusReady, b.store.Snapshot().Node("n1").Status)
	b.deps.Leader = fakeLeader{}
	_, err = b.Heartbeat(ctx, "n1")
	require.Equal(t, drover.NotLeader, drover.CodeOf(err))
	_, err = b.Register(ctx, &drover.Node{ID: "x"})
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
}

func TestARolloutGoesOnWhenAWarmRunnerStarts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pool := func(cpu int, alloc string) {
		j := &drover.Job{ID: "env", Type: drover.JobTypeService, TaskGroups: []*drover.TaskGroup{{
			Name: "g", Pool: &drover.WarmPool{Size: 1}, Tasks: []*drover.Task{{Name: "t", Driver: "fake", Resources: &drover.Resources{CPU: cpu}}},
		}}}
		j.Canonicalize()
		_, stored, err := b.log.Propose(t.Context(), &command.RegisterJob{Job: j})
		require.NoError(t, err)
		_, _, err = b.log.Propose(t.Context(), &command.ApplyPlans{Plans: []command.PlanCommit{{
			Job: stored.(*drover.Job), Placed: []*drover.Allocation{{ID: alloc, Namespace: "default", JobID: "env", TaskGroup: "g", NodeID: "n1"}},
		}}})
		require.NoError(t, err)
	}
	pool(100, "old")
	require.NoError(t, b.Push(t.Context(), "n1", update("old", drover.AllocClientRunning)))
	require.Empty(t, b.log.updates[0].Evals, "nothing rolls out")
	pool(200, "new")
	require.NoError(t, b.Push(t.Context(), "n1", update("new", drover.AllocClientRunning)))
	require.Len(t, b.log.updates[1].Evals, 1)
	require.Equal(t, drover.TriggerRollingUpdate, b.log.updates[1].Evals[0].TriggeredBy)
}

// TestOrdersNeedTheirVersion: servers of an older program would not know an order, and take what others refuse.
func TestOrdersNeedTheirVersion(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.place(t, "service", "n1", "a")
	push := func(status string, order uint64) {
		t.Helper()
		require.NoError(t, b.Push(t.Context(), "n1", []exchange.AllocUpdate{{ID: "a", ClientStatus: status, Order: order}}))
	}
	push(drover.AllocClientRunning, 5)
	push(drover.AllocClientPending, 4)
	require.Zero(t, b.store.Snapshot().Allocation("a").Reported)
	require.Equal(t, drover.AllocClientPending, b.store.Snapshot().Allocation("a").ClientStatus)
	_, _, err := b.log.Propose(t.Context(), &command.RaiseVersion{Version: orderedSince})
	require.NoError(t, err)
	push(drover.AllocClientRunning, 5)
	push(drover.AllocClientPending, 4)
	require.Equal(t, uint64(5), b.store.Snapshot().Allocation("a").Reported)
	require.Equal(t, drover.AllocClientRunning, b.store.Snapshot().Allocation("a").ClientStatus)
}

// TestFailingServicesNeedTheirVersion: servers of an older program would not know them, and their state would be another one.
func TestFailingServicesNeedTheirVersion(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.place(t, "service", "n1", "a")
	push := func(failing ...string) []string {
		t.Helper()
		require.NoError(t, b.Push(t.Context(), "n1", []exchange.AllocUpdate{{
			ID: "a", ClientStatus: drover.AllocClientRunning, TaskStates: map[string]*drover.TaskState{}, FailingServices: failing,
		}}))
		return b.store.Snapshot().Allocation("a").FailingServices
	}
	require.Empty(t, push("t/web/http"))
	_, _, err := b.log.Propose(t.Context(), &command.RaiseVersion{Version: servicesSince})
	require.NoError(t, err)
	require.Equal(t, []string{"t/web/http"}, push("t/web/http"))
	require.Empty(t, push())
}
