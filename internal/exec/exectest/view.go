package exectest

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exec/runner"
)

// view is a Snapshot: a copy of the maps.
type view struct {
	index  uint64
	jobs   map[drover.NamespacedID]*drover.Job
	allocs map[string]*drover.Allocation
	quota  int
}

// Snapshot is the state now.
func (c *Control) Snapshot() runner.Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return view{c.index, maps.Clone(c.jobs), maps.Clone(c.allocs), c.quota}
}

func (v view) Index() uint64 { return v.index }
func (v view) Job(namespace, id string) *drover.Job {
	return v.jobs[drover.NamespacedID{Namespace: namespace, ID: id}]
}
func (v view) Allocation(allocID string) *drover.Allocation { return v.allocs[allocID] }

// Jobs yields the jobs in no particular order, unlike the real state; callers that need one must sort.
func (v view) Jobs(namespace, prefix string) iter.Seq[*drover.Job] {
	return func(yield func(*drover.Job) bool) {
		for of, j := range v.jobs {
			if (namespace == "*" || of.Namespace == namespace) && strings.HasPrefix(of.ID, prefix) && !yield(j) {
				return
			}
		}
	}
}

// AllocationsByJob looks at all allocations; tests have few. The order is random too.
func (v view) AllocationsByJob(namespace, jobID string) iter.Seq[*drover.Allocation] {
	return func(yield func(*drover.Allocation) bool) {
		for _, a := range v.allocs {
			if a.Namespace == namespace && a.JobID == jobID && !yield(a) {
				return
			}
		}
	}
}

// EvaluationsByJob yields none: this scheduler places without evaluations.
func (v view) EvaluationsByJob(string, string) iter.Seq[*drover.Evaluation] {
	return slices.Values([]*drover.Evaluation(nil))
}

// subscription reads the list of all events, which is never cut: it cannot fall behind.
type subscription struct {
	c    *Control
	next uint64
}

// subscribe begins with the event at the index from, the first of which is 1.
func (c *Control) subscribe(from uint64) (runner.Subscription, error) {
	return &subscription{c, from}, nil
}

func (s *subscription) Close() {}

// Next fetches the channel of the next change before it looks at the list. Thereby an event between the two is not
// missed.
func (s *subscription) Next(ctx context.Context) (drover.Events, error) {
	for {
		s.c.mu.Lock()
		changed := s.c.changed.C()
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
