package runner

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"drover"
	"drover/internal/clock"
	"drover/internal/exec/environment"
	"drover/internal/id"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// control is a state, a scheduler and a node in a few lines: every pool is filled at once.
type control struct {
	mu      sync.Mutex
	index   uint64
	jobs    map[string]*drover.Job
	allocs  map[string]*drover.Allocation
	events  []drover.Events
	changed chan struct{}
	ids     *id.Seeded
	refill  bool
	failing error // of ClaimRunners
	claims  int   // entries
	claimed map[string]string
}

func newControl() *control {
	return &control{
		jobs: map[string]*drover.Job{}, allocs: map[string]*drover.Allocation{}, changed: make(chan struct{}),
		ids: id.NewSeeded(1), refill: true, claimed: map[string]string{},
	}
}

func (c *control) emitLocked(topic string, keys ...string) {
	c.index++
	e := drover.Events{Index: c.index}
	for _, k := range keys {
		e.Events = append(e.Events, drover.Event{Topic: topic, Key: k, Index: c.index})
	}
	c.events = append(c.events, e)
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *control) setLocked(a *drover.Allocation) {
	c.allocs[a.ID] = a
	c.emitLocked(drover.TopicAllocation, a.ID)
	c.fillLocked(a.JobID)
}

func (c *control) fillLocked(jobID string) {
	job := c.jobs[jobID]
	if job == nil || !c.refill {
		return
	}
	warm := 0
	for _, a := range c.allocs {
		if a.JobID == jobID && !a.Terminal() && a.Claim == nil {
			warm++
		}
	}
	for range job.TaskGroups[0].Pool.Size - warm {
		c.addLocked(jobID, drover.AllocClientRunning)
	}
}

func (c *control) addLocked(jobID, status string) *drover.Allocation {
	a := &drover.Allocation{
		ID: c.ids.New(), JobID: jobID, Namespace: "default", NodeID: "node", ClientStatus: status,
		DesiredStatus: drover.AllocDesiredRun, CreateIndex: c.index,
	}
	c.allocs[a.ID] = a
	c.emitLocked(drover.TopicAllocation, a.ID)
	return a
}

// update changes an allocation as a node would.
func (c *control) update(allocID string, change func(*drover.Allocation)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := *c.allocs[allocID]
	change(&a)
	c.setLocked(&a)
}

func (c *control) RegisterJob(_ context.Context, job *drover.Job) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	j := *job
	j.ModifyIndex = c.index + 1
	c.jobs[job.ID] = &j
	c.emitLocked(drover.TopicJob, job.ID)
	c.fillLocked(job.ID)
	return nil
}

func (c *control) DeregisterJob(_ context.Context, _, jobID string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.jobs, jobID)
	c.emitLocked(drover.TopicJob, jobID)
	for _, a := range maps.Clone(c.allocs) {
		if a.JobID == jobID {
			stopped := *a
			stopped.DesiredStatus = drover.AllocDesiredStop
			c.setLocked(&stopped)
		}
	}
	return nil
}

func (c *control) ClaimRunners(_ context.Context, claims []AllocClaim) ([]error, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failing != nil {
		return nil, c.failing
	}
	c.claims++
	results := make([]error, len(claims))
	for i, claim := range claims {
		a := c.allocs[claim.AllocID]
		switch {
		case a == nil || a.Terminal():
			results[i] = drover.Errorf(drover.Conflict, "ended")
		case a.Claim != nil && a.Claim.RunnerID != claim.Claim.RunnerID:
			results[i] = drover.Errorf(drover.Conflict, "claimed already")
		default:
			taken := *a
			taken.Claim = &claim.Claim
			c.setLocked(&taken)
		}
	}
	return results, nil
}

func (c *control) ReleaseRunners(_ context.Context, allocIDs []string, _ string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, allocID := range allocIDs {
		if a := c.allocs[allocID]; a != nil && !a.Terminal() {
			stopped := *a
			stopped.DesiredStatus = drover.AllocDesiredStop
			c.setLocked(&stopped)
		}
	}
	return nil
}

// view is a Snapshot: a copy of the maps.
type view struct {
	index  uint64
	jobs   map[string]*drover.Job
	allocs map[string]*drover.Allocation
}

func (c *control) snapshot() Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return view{c.index, maps.Clone(c.jobs), maps.Clone(c.allocs)}
}

func (v view) Index() uint64                                { return v.index }
func (v view) Job(_, jobID string) *drover.Job              { return v.jobs[jobID] }
func (v view) Allocation(allocID string) *drover.Allocation { return v.allocs[allocID] }

func (v view) Jobs(_, prefix string) iter.Seq[*drover.Job] {
	return func(yield func(*drover.Job) bool) {
		for jobID, j := range v.jobs {
			if strings.HasPrefix(jobID, prefix) && !yield(j) {
				return
			}
		}
	}
}

func (v view) AllocationsByJob(_, jobID string) iter.Seq[*drover.Allocation] {
	return func(yield func(*drover.Allocation) bool) {
		for _, a := range v.allocs {
			if a.JobID == jobID && !yield(a) {
				return
			}
		}
	}
}

func (v view) EvaluationsByJob(string, string) iter.Seq[*drover.Evaluation] {
	return slices.Values([]*drover.Evaluation(nil))
}

type subscription struct {
	c    *control
	next uint64
}

func (c *control) subscribe(from uint64) (Subscription, error) { return &subscription{c, from}, nil }

func (s *subscription) Close() {}

func (s *subscription) Next(ctx context.Context) (drover.Events, error) {
	for {
		s.c.mu.Lock()
		changed := s.c.changed
		if n := int(s.next) - 1; n < len(s.c.events) {
			e := s.c.events[n]
			s.next++
			s.c.mu.Unlock()
			return e, nil
		}
		s.c.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return drover.Events{}, ctx.Err()
		}
	}
}

func (c *control) deps() Deps {
	return Deps{
		Snapshot: c.snapshot, Subscribe: c.subscribe, Intake: c, Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler),
		Workloads: func(nodeID string) (drover.Workloads, error) {
			if nodeID != "node" {
				return nil, drover.Errorf(drover.Unavailable, "node %s is away", nodeID)
			}
			return nil, nil
		},
	}
}

// start runs a service until the test ends or stop is called; stop is like kill -9 in that nothing is flushed.
func start(t testing.TB, c *control, cfg Config) (s *Service, stop func()) {
	t.Helper()
	s, err := New(cfg, c.deps())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Run(ctx) }() // ends with ctx
	stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(stop)
	return s, stop
}

func journalIn(dir string) Config { return Config{JournalPath: filepath.Join(dir, "claims.journal")} }

func put(t testing.TB, s *Service, name string, size int) {
	t.Helper()
	_, err := s.PutEnvironment(context.Background(), drover.Environment{ID: name, Image: "host", PoolSize: size})
	require.NoError(t, err)
}

// awaitWarm waits, by claiming's own means, until the service knows n warm runners.
func awaitWarm(t testing.TB, c *control, s *Service, n int) {
	t.Helper()
	sub, _ := c.subscribe(1)
	for {
		counts, err := s.Counts(context.Background())
		require.NoError(t, err)
		total := 0
		for _, count := range counts {
			total += count.Warm
		}
		if total == n {
			return
		}
		require.LessOrEqual(t, total, n)
		_ = sub
	}
}

func claimReq(name string) drover.ClaimRequest { return drover.ClaimRequest{Environment: name} }

func jobOf(name string) string { return environment.JobID(name) }

func unique(t testing.TB, seen map[string]bool, r drover.Runner) {
	t.Helper()
	require.False(t, seen[r.AllocID], fmt.Sprintf("runner %s was handed out twice", r.ID))
	seen[r.AllocID] = true
}
