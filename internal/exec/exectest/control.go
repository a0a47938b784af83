package exectest

import (
	"context"
	"log/slog"
	"maps"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/deepcopy"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/exec/runner"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/wake"
)

// Control is a state, a scheduler and a node in a few lines: every pool is filled at once.
type Control struct {
	mu      sync.Mutex
	index   uint64
	jobs    map[drover.NamespacedID]*drover.Job
	allocs  map[string]*drover.Allocation
	events  []drover.Events
	changed wake.Broadcast
	ids     *id.Seeded
	Node    *Node
	// noRefill is set by StopRefill: pools then only shrink, so that a test can empty one.
	noRefill bool
	within   bool  // an entry
	failing  error // of ClaimRunners
	keeping  error // of ReleaseRunners
	claims   int   // entries
	puts     int   // of RegisterJob
	quota    int   // of claimed runners; 0: none
	refused  int   // claims beyond it
}

// NewControl returns an empty state.
func NewControl() *Control {
	return &Control{
		jobs: map[drover.NamespacedID]*drover.Job{}, allocs: map[string]*drover.Allocation{},
		ids: id.NewSeeded(1), Node: NewNode(),
	}
}

// emitLocked moves the index on by one and adds one event for each key, all with that index. Events carry no
// payload: their readers look the keys up in a snapshot.
func (c *Control) emitLocked(topic string, keys ...string) {
	c.index++
	e := drover.Events{Index: c.index}
	for _, k := range keys {
		e.Events = append(e.Events, drover.Event{Topic: topic, Key: k, Index: c.index})
	}
	c.events = append(c.events, e)
	c.changed.Send()
}

// tellLocked tells of a job.
func (c *Control) tellLocked(job drover.NamespacedID) {
	c.emitLocked(drover.TopicJob, job.ID)
	e := c.events[len(c.events)-1].Events
	e[0].Namespace = job.Namespace
}

func jobOf(a *drover.Allocation) drover.NamespacedID {
	return drover.NamespacedID{Namespace: a.Namespace, ID: a.JobID}
}

// setLocked stores an allocation. One that ended takes its sessions with it, as a node would, and its pool is
// filled again.
func (c *Control) setLocked(a *drover.Allocation) {
	c.allocs[a.ID] = a
	if a.Terminal() {
		c.Node.Break(a.ID)
	}
	c.emitLocked(drover.TopicAllocation, a.ID)
	c.fillLocked(jobOf(a))
}

// fillLocked brings a pool to its size plus its demand at once: it starts what is missing, and stops what is too
// much. While an entry is being applied it does nothing, because the entry's other parts may still change the pool.
func (c *Control) fillLocked(of drover.NamespacedID) {
	job := c.jobs[of]
	if job == nil || c.noRefill || c.within {
		return
	}
	want := job.TaskGroups[0].Pool.Size + job.TaskGroups[0].Pool.Demand
	var warm []*drover.Allocation
	for _, a := range c.allocs {
		if jobOf(a) == of && !a.Terminal() && a.Claim == nil {
			warm = append(warm, a)
		}
	}
	for range want - len(warm) {
		c.addLocked(of, drover.AllocClientRunning)
	}
	for _, a := range warm[:max(0, len(warm)-want)] {
		stopped := *a
		stopped.DesiredStatus = drover.AllocDesiredStop
		c.allocs[a.ID] = &stopped
		c.emitLocked(drover.TopicAllocation, a.ID)
	}
}

// demandLocked stores a pool's demand in a copy of its job; earlier snapshots share the old one. Environments that
// no longer exist are skipped.
func (c *Control) demandLocked(d runner.Demand) {
	old := c.jobs[environment.JobOf(d.Environment)]
	if old == nil {
		return
	}
	j := deepcopy.Of(old)
	j.TaskGroups[0].Pool.Demand = d.Runners
	j.ModifyIndex = c.index + 1
	c.jobs[j.Key()] = j
	c.tellLocked(j.Key())
}

// addLocked adds an allocation of the job. Its ids come from a seeded source, so that a failing test fails again
// alike.
func (c *Control) addLocked(of drover.NamespacedID, status string) *drover.Allocation {
	a := &drover.Allocation{
		ID: c.ids.New(), JobID: of.ID, Namespace: of.Namespace, NodeID: "node", ClientStatus: status,
		DesiredStatus: drover.AllocDesiredRun, CreateIndex: c.index,
	}
	c.allocs[a.ID] = a
	c.emitLocked(drover.TopicAllocation, a.ID)
	return a
}

// Update changes an allocation as a node would.
func (c *Control) Update(allocID string, change func(*drover.Allocation)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := *c.allocs[allocID]
	change(&a)
	c.setLocked(&a)
}

// RegisterJob serves runner.Intake.
func (c *Control) RegisterJob(_ context.Context, job *drover.Job) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.jobs[job.Key()]; job.JobModifyIndex != 0 && (old == nil || old.JobModifyIndex != job.JobModifyIndex) {
		return drover.Errorf(drover.Conflict, "the job was changed")
	}
	j := *job
	c.puts++
	j.ModifyIndex, j.JobModifyIndex = c.index+1, c.index+1
	c.jobs[job.Key()] = &j
	c.tellLocked(job.Key())
	c.fillLocked(job.Key())
	return nil
}

// DeregisterJob serves runner.Intake.
func (c *Control) DeregisterJob(_ context.Context, namespace, jobID string) error {
	of := drover.NamespacedID{Namespace: namespace, ID: jobID}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.jobs, of)
	c.tellLocked(of)
	for _, a := range maps.Clone(c.allocs) {
		if jobOf(a) == of {
			stopped := *a
			stopped.DesiredStatus = drover.AllocDesiredStop
			c.setLocked(&stopped)
		}
	}
	return nil
}

// ClaimRunners serves runner.Intake.
func (c *Control) ClaimRunners(_ context.Context, claims []runner.AllocClaim, demands []runner.Demand) ([]error, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failing != nil {
		return nil, c.failing
	}
	c.claims++
	c.within = true // one entry: pools are looked at when all of it is done
	defer func() {
		c.within = false
		for _, d := range demands {
			c.demandLocked(d)
		}
		for of := range c.jobs {
			c.fillLocked(of)
		}
	}()
	results := make([]error, len(claims))
	for i, claim := range claims {
		a := c.allocs[claim.AllocID]
		switch {
		case a == nil || a.Terminal():
			results[i] = drover.Errorf(drover.Conflict, "ended")
		case a.Claim != nil && a.Claim.RunnerID != claim.Claim.RunnerID:
			results[i] = drover.Errorf(drover.Conflict, "claimed already")
		case claim.Bounded && a.Claim == nil && c.quota > 0 && claimedOf(c.allocs) >= c.quota:
			c.refused++
			results[i] = drover.Errorf(drover.Exhausted, "the quota is reached")
		default:
			taken := *a
			taken.Claim = &claim.Claim
			c.setLocked(&taken)
		}
	}
	return results, nil
}

// ReleaseRunners serves runner.Intake.
func (c *Control) ReleaseRunners(_ context.Context, r runner.Releases) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.keeping != nil {
		return c.keeping
	}
	for _, allocID := range r.AllocIDs {
		if a := c.allocs[allocID]; a != nil && !a.Terminal() {
			stopped := *a
			stopped.DesiredStatus = drover.AllocDesiredStop
			c.setLocked(&stopped)
		}
	}
	return nil
}

// Deps are a runner.Service's.
func (c *Control) Deps() runner.Deps {
	return runner.Deps{
		Snapshot: c.Snapshot, Subscribe: c.subscribe, Intake: c, Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler),
		Workloads: func(nodeID string) (exchange.Workloads, error) {
			if nodeID != "node" {
				return nil, drover.Errorf(drover.Unavailable, "node %s is away", nodeID)
			}
			return c.Node, nil
		},
	}
}

// Start runs a service until the test ends or stop is called; stop is like kill -9 in that nothing is flushed. With the test the node ends.
func Start(t testing.TB, c *Control, cfg runner.Config) (s *runner.Service, stop func()) {
	t.Helper()
	s, err := runner.New(cfg, c.Deps())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Run(ctx) }() // ends with ctx
	stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(func() {
		stop()
		c.Node.end()
	})
	return s, stop
}

// Put puts an environment on the host image.
func Put(t testing.TB, s *runner.Service, name string, size int) {
	t.Helper()
	_, err := s.PutEnvironment(context.Background(), execution.Environment{ID: name, Image: "host", PoolSize: size})
	require.NoError(t, err)
}

// AwaitWarm waits until the service knows n warm runners.
func AwaitWarm(t testing.TB, s *runner.Service, n int) {
	t.Helper()
	for {
		counts, err := s.Pools(context.Background())
		require.NoError(t, err)
		total := 0
		for _, count := range counts {
			total += count.Warm
		}
		if total == n {
			return
		}
		require.LessOrEqual(t, total, n)
		runtime.Gosched()
	}
}

// ClaimEntries is how many entries recorded claims so far.
func (c *Control) ClaimEntries() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.claims
}

// Fail makes ClaimRunners fail, or work again (nil).
func (c *Control) Fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failing = err
}

// FailReleases makes ReleaseRunners fail, or work again (nil).
func (c *Control) FailReleases(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keeping = err
}

// Failing reports whether it does.
func (c *Control) Failing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failing != nil
}

// Add adds a running allocation of the environment.
func (c *Control) Add(environmentID string) *drover.Allocation {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.addLocked(environment.JobOf(environmentID), drover.AllocClientRunning)
}

// AddLeased is Add of a runner that is leased to an incarnation.
func (c *Control) AddLeased(environmentID string, lease uint64) *drover.Allocation {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.addLocked(environment.JobOf(environmentID), drover.AllocClientRunning)
	a.Lease = lease // nobody has seen it yet: snapshots are made under the lock
	return a
}

// NewID makes an id that nothing has.
func (c *Control) NewID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ids.New()
}

// AwaitIndex waits until the service knows all warm runners that there are.
func AwaitIndex(t testing.TB, c *Control, s *runner.Service) {
	t.Helper()
	for {
		c.mu.Lock()
		warm := 0
		for _, a := range c.allocs {
			if !a.Terminal() && a.Claim == nil && c.jobs[jobOf(a)] != nil {
				warm++
			}
		}
		c.mu.Unlock()
		pools, err := s.Pools(context.Background())
		require.NoError(t, err)
		for _, p := range pools {
			warm -= p.Warm
		}
		if warm == 0 {
			return
		}
		runtime.Gosched()
	}
}

// StopRefill leaves pools as they are from now on.
func (c *Control) StopRefill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noRefill = true
}

// Registrations is how often a job was registered.
func (c *Control) Registrations() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.puts
}
