package leader_test

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
	"github.com/drover-project/drover/internal/control/assignment"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/intake"
	"github.com/drover-project/drover/internal/control/leader"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/id"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memoryLog applies at once, as raft with one voter and no disk would.
type memoryLog struct {
	mu    sync.Mutex
	fsm   *fsm.FSM
	index uint64
	count map[command.Kind]int
	full  bool // as a full disk: nothing is taken
	death *death
	dead  bool          // the leader has died: it writes nothing any more
	slow  time.Duration // that an entry of plans takes
}

func (l *memoryLog) setFull(full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.full = full
}

func (l *memoryLog) Propose(ctx context.Context, c command.Command) (uint64, any, error) {
	if err := ctx.Err(); err != nil {
		return 0, nil, err
	}
	data, err := command.Encode(c)
	if err != nil {
		return 0, nil, err
	}
	if c.Kind() == command.KindApplyPlans {
		clock.Sleep(ctx, clock.Wall{}, l.plansTake())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.full {
		return 0, nil, drover.Errorf(drover.Exhausted, "writes are refused: no space left")
	}
	lost := drover.Errorf(drover.NotLeader, "leadership was lost while proposing; it may still be applied")
	dies, written := l.death.at(c.Kind(), l.count[command.KindApplyPlans])
	if dies {
		defer close(l.death.died)
	}
	if l.dead || dies && !written {
		l.dead = true
		return 0, nil, lost
	}
	l.index++
	l.count[c.Kind()]++
	result, err := l.fsm.Apply(l.index, data)
	if dies {
		l.dead = true
		return 0, nil, lost
	}
	return l.index, result, err
}

// cluster is the whole control plane in memory.
type cluster struct {
	t      testing.TB
	store  *store.Store
	log    *memoryLog
	leader *leader.Leader
	intake *intake.Intake
	nodes  *assignment.Controller
	stop   func()
}

func newCluster(t testing.TB, cfg leader.Config) *cluster {
	c := &cluster{t: t, store: store.New()}
	deps := leader.Deps{Store: c.store, Clock: clock.Wall{}, IDs: id.Random{}, Logger: slog.New(slog.DiscardHandler)}
	deps.Launch = func(ctx context.Context, ns, jobID string, at time.Time) error {
		_, err := c.intake.LaunchPeriodic(ctx, ns, jobID, at)
		return err
	}
	c.leader = leader.New(cfg, deps)
	c.log = &memoryLog{fsm: fsm.New(c.store, c.leader), count: map[command.Kind]int{}}
	c.intake = intake.New(intake.Deps{
		Log: c.log, Store: c.store, Clock: clock.Wall{}, IDs: id.Random{}, Collect: c.leader.CollectGarbage,
	})
	c.nodes = assignment.New(assignment.Deps{
		Log: c.log, Store: c.store, Leader: c.leader, Clock: clock.Wall{}, IDs: id.Random{}, Logger: slog.New(slog.DiscardHandler),
	})
	c.start()
	t.Cleanup(func() { c.stop() })
	return c
}

// start leads until stop.
func (c *cluster) start() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = c.leader.Run(ctx, c.log) }() // ends with cancel
	c.stop = func() { cancel(); <-ended }
}

// until waits until a state satisfies the condition.
func (c *cluster) until(what string, cond func(s *store.Snapshot) bool) {
	c.t.Helper()
	limit := time.NewTimer(24 * time.Hour)
	if _, ok := c.t.(*testing.B); ok {
		limit.Reset(20 * time.Second)
	}
	defer limit.Stop()
	for {
		changed := c.store.WatchAny()
		s := c.store.Snapshot()
		if cond(s) {
			return
		}
		select {
		case <-changed:
		case <-limit.C:
			if c.store.Index() < 1000 {
				c.dump()
			}
			c.t.Fatalf("never: %s", what)
		}
	}
}

func (c *cluster) dump() {
	s := c.store.Snapshot()
	for e := range s.Evaluations("*", "") {
		c.t.Logf("eval %s %s %s %s by %s: %s until %v failed %v", e.ID[:8], e.JobID, e.Type, e.Status, e.TriggeredBy, e.StatusDescription,
			e.WaitUntil, len(e.FailedTGAllocs))
	}
	for a := range s.Allocations("*", "") {
		c.t.Logf("alloc %s %s node %s %s/%s %s claim %v", a.ID[:8], a.Name, a.NodeID, a.DesiredStatus, a.ClientStatus, a.DesiredDescription,
			a.Claim != nil)
	}
	for d := range s.Deployments("*", "") {
		c.t.Logf("deployment %s v%d %s: %s", d.ID[:8], d.JobVersion, d.Status, d.StatusDescription)
	}
	c.t.Logf("broker %+v index %d", c.leader.Stats(), s.Index())
}

func testNode(nodeID string, cpu int64) *drover.Node {
	return &drover.Node{
		ID: nodeID, SecretID: "secret-" + nodeID, Name: nodeID, Datacenter: "dc1", NodePool: drover.DefaultNodePool,
		Attributes: map[string]string{"driver.fake": "1"},
		NodeResources: &drover.NodeResources{
			Cpu: drover.NodeCpuResources{CpuShares: cpu}, Memory: drover.NodeMemoryResources{MemoryMB: 1 << 20},
			Disk: drover.NodeDiskResources{DiskMB: 1 << 30},
		},
		Drivers: map[string]*drover.DriverInfo{"fake": {Detected: true, Healthy: true}},
	}
}

func testJob(jobID, kind string, count int) *drover.Job {
	return &drover.Job{
		ID: jobID, Type: kind,
		TaskGroups: []*drover.TaskGroup{{
			Name: "g", Count: new(count),
			Tasks: []*drover.Task{{Name: "t", Driver: "fake", Resources: &drover.Resources{CPU: 100, MemoryMB: 10}}},
		}},
	}
}

func testPool(jobID string, size int) *drover.Job {
	j := testJob(jobID, drover.JobTypeService, size)
	j.TaskGroups[0].Pool = &drover.WarmPool{Size: size}
	j.TaskGroups[0].Update = &drover.UpdateStrategy{MaxParallel: new(0)}
	return j
}

func (c *cluster) register(j *drover.Job) drover.Outcome {
	c.t.Helper()
	o, err := c.intake.RegisterJob(context.Background(), drover.RegisterRequest{Job: j})
	require.NoError(c.t, err)
	return o
}

func (c *cluster) allocs(s *store.Snapshot, jobID string, keep func(*drover.Allocation) bool) []*drover.Allocation {
	var out []*drover.Allocation
	for a := range s.AllocationsByJob(drover.DefaultNamespace, jobID) {
		if keep(a) {
			out = append(out, a)
		}
	}
	return out
}

func wantedPending(a *drover.Allocation) bool { return !a.Terminal() }
func isRunning(a *drover.Allocation) bool {
	return !a.ServerTerminal() && a.ClientStatus == drover.AllocClientRunning
}

// agent plays a node: it pulls, and runs what it is told; batch tasks complete at once. It ends with ctx.
type agent struct {
	c      *cluster
	node   *drover.Node
	finish bool // tasks complete at once
	wg     sync.WaitGroup
	stop   context.CancelFunc
}

func (c *cluster) agent(node *drover.Node, finish bool) *agent {
	ctx, cancel := context.WithCancel(context.Background())
	a := &agent{c: c, node: node, finish: finish, stop: cancel}
	ttl, err := c.nodes.Register(ctx, node)
	require.NoError(c.t, err)
	a.wg.Go(func() { a.beat(ctx, ttl.TTL) }) // ends with ctx
	a.wg.Go(func() { a.pull(ctx) })          // ends with ctx
	c.t.Cleanup(func() { cancel(); a.wg.Wait() })
	return a
}

func (a *agent) beat(ctx context.Context, ttl time.Duration) {
	for clock.Sleep(ctx, clock.Wall{}, ttl) {
		if r, err := a.c.nodes.Heartbeat(ctx, a.node.ID); err == nil {
			ttl = r.TTL
		}
	}
}

func (a *agent) pull(ctx context.Context) {
	var since uint64
	reported := map[string]string{}
	for ctx.Err() == nil {
		got, err := a.c.nodes.Pull(ctx, a.node.ID, exchange.Seen{Index: since}, time.Minute)
		if err != nil {
			return
		}
		since = got.Index
		var updates []exchange.AllocUpdate
		for _, x := range got.Allocs {
			status := drover.AllocClientRunning
			if x.ServerTerminal() || a.finish {
				status = drover.AllocClientComplete
			}
			if reported[x.ID] == status {
				continue
			}
			reported[x.ID] = status
			updates = append(updates, exchange.AllocUpdate{
				ID: x.ID, ClientStatus: status, Time: time.Now().UnixNano(),
				TaskStates: map[string]*drover.TaskState{"t": {State: "running", StartedAt: time.Now()}},
			})
		}
		if err := a.c.nodes.Push(ctx, a.node.ID, updates); err != nil {
			since = 0
			clear(reported)
			if drover.CodeOf(err) == drover.NotFound || !clock.Sleep(ctx, clock.Wall{}, time.Second) {
				return
			}
		}
	}
}

func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, f)
}

func TestBatchJobToComplete(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, leader.Config{})
		c.agent(testNode("n1", 10_000), true)
		c.register(testJob("b", drover.JobTypeBatch, 20))
		c.until("job dead", func(s *store.Snapshot) bool {
			return s.Job("default", "b").Status == drover.JobStatusDead &&
				s.JobSummary("default", "b").Summary["g"].Complete == 20
		})
		for e := range c.store.Snapshot().Evaluations("*", "") {
			require.True(t, e.Terminal(), "%s by %s", e.Status, e.TriggeredBy)
		}
		require.Equal(t, 1, c.log.count[command.KindApplyPlans], "plan and evaluation in one entry")
		require.Zero(t, c.log.count[command.KindUpdateEvals])
	})
}

func TestServiceRunsAndStops(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, leader.Config{})
		c.agent(testNode("n1", 10_000), false)
		j := testJob("s", drover.JobTypeService, 3)
		j.Update = &drover.UpdateStrategy{MaxParallel: new(0)}
		c.register(j)
		c.until("running", func(s *store.Snapshot) bool { return len(c.allocs(s, "s", isRunning)) == 3 })
		require.Equal(t, drover.JobStatusRunning, c.store.Snapshot().Job("default", "s").Status)
		_, err := c.intake.DeregisterJob(t.Context(), drover.DeregisterRequest{Namespace: "default", ID: "s"})
		require.NoError(t, err)
		c.until("dead and gone", func(s *store.Snapshot) bool {
			return s.Job("default", "s").Status == drover.JobStatusDead && s.Used("n1") == drover.Capacity{}
		})
	})
}

func TestBlockedThenUnblocked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, leader.Config{})
		c.agent(testNode("n1", 250), true) // room for two at a time
		for i := range 9 {
			c.register(testJob(fmt.Sprintf("b%d", i), drover.JobTypeBatch, 2))
		}
		c.until("all dead", func(s *store.Snapshot) bool {
			for i := range 9 {
				if s.Job("default", fmt.Sprintf("b%d", i)).Status != drover.JobStatusDead {
					return false
				}
			}
			return true
		})
	})
}

func TestBlockedUntilANodeComes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, leader.Config{})
		c.register(testJob("b", drover.JobTypeBatch, 1))
		c.until("blocked", func(*store.Snapshot) bool { return c.leader.Stats().Blocked == 1 })
		c.agent(testNode("n1", 1000), true)
		c.until("dead", func(s *store.Snapshot) bool { return s.Job("default", "b").Status == drover.JobStatusDead })
		synctest.Wait()
		require.Zero(t, c.leader.Stats().Blocked)
		for e := range c.store.Snapshot().Evaluations("*", "") {
			require.True(t, e.Terminal(), "%s by %s", e.Status, e.TriggeredBy)
		}
	})
}

func TestLostNodeIsReplaced(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, leader.Config{})
		a := c.agent(testNode("n1", 10_000), false)
		j := testJob("s", drover.JobTypeService, 2)
		j.Update = &drover.UpdateStrategy{MaxParallel: new(0)}
		c.register(j)
		c.until("running", func(s *store.Snapshot) bool { return len(c.allocs(s, "s", isRunning)) == 2 })
		c.agent(testNode("n2", 10_000), false)
		a.stop()
		a.wg.Wait()
		c.until("moved", func(s *store.Snapshot) bool {
			moved := c.allocs(s, "s", func(a *drover.Allocation) bool { return isRunning(a) && a.NodeID == "n2" })
			return len(moved) == 2
		})
		s := c.store.Snapshot()
		require.Equal(t, drover.NodeStatusDown, s.Node("n1").Status)
		require.Zero(t, s.Used("n1"))
		_, err := c.nodes.Heartbeat(t.Context(), "n1")
		require.NoError(t, err)
		require.Equal(t, drover.NodeStatusReady, c.store.Snapshot().Node("n1").Status)
	})
}

func TestClaimedRunnerIsReplaced(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, leader.Config{})
		c.agent(testNode("n1", 10_000), false)
		c.register(testPool("env", 3))
		warm := func(s *store.Snapshot) []*drover.Allocation {
			return c.allocs(s, "env", func(a *drover.Allocation) bool { return isRunning(a) && a.Claim == nil })
		}
		c.until("warm", func(s *store.Snapshot) bool { return len(warm(s)) == 3 })
		first := warm(c.store.Snapshot())[:2]
		results, err := c.intake.ClaimRunners(t.Context(), []command.RunnerClaim{
			{AllocID: first[0].ID, Claim: drover.Claim{RunnerID: "r1"}}, {AllocID: first[1].ID, Claim: drover.Claim{RunnerID: "r2"}},
		})
		require.NoError(t, err)
		require.NoError(t, results[0].Err)
		require.NoError(t, results[1].Err)
		c.until("refilled", func(s *store.Snapshot) bool { return len(warm(s)) == 3 })
		s := c.store.Snapshot()
		require.Len(t, c.allocs(s, "env", isRunning), 5)
		_, err = c.intake.ReleaseRunners(t.Context(), []string{first[0].ID}, "released")
		require.NoError(t, err)
		c.until("released", func(s *store.Snapshot) bool { return s.Allocation(first[0].ID).ClientTerminal() })
		synctest.Wait()
		require.Len(t, warm(c.store.Snapshot()), 3)
	})
}

func TestLeadershipLostAndWon(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, leader.Config{})
		c.agent(testNode("n1", 10_000), true)
		c.stop()
		c.register(testJob("b", drover.JobTypeBatch, 4)) // the evaluation waits in the state
		require.Zero(t, c.leader.Stats().Ready)
		c.start()
		c.until("dead", func(s *store.Snapshot) bool { return s.Job("default", "b").Status == drover.JobStatusDead })
	})
}

func TestWrongSecret(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, leader.Config{})
		_, err := c.nodes.Register(t.Context(), testNode("n1", 1))
		require.NoError(t, err)
		index := c.store.Index()
		_, err = c.nodes.Register(t.Context(), testNode("n1", 1))
		require.NoError(t, err)
		require.Equal(t, index, c.store.Index(), "nothing changed, nothing stored")
		thief := testNode("n1", 1)
		thief.SecretID = "other"
		_, err = c.nodes.Register(t.Context(), thief)
		require.Equal(t, drover.Unauthorized, drover.CodeOf(err))
	})
}

func TestPeriodicJob(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, leader.Config{})
		c.agent(testNode("n1", 10_000), true)
		j := testJob("p", drover.JobTypeBatch, 1)
		j.Periodic = &drover.PeriodicConfig{Spec: "*/5 * * * *"}
		c.register(j)
		c.until("three launches", func(s *store.Snapshot) bool {
			n := 0
			for child := range s.Jobs("default", "p/periodic-") {
				if child.Status == drover.JobStatusDead {
					n++
				}
			}
			return n == 3
		})
	})
}
