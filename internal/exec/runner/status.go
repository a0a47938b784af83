package runner

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/environment"
)

// Pools returns how all environments' pools stand, sorted by id: sizes, warm and claimed runners and waiting claims
// only, which cost no look into the state.
func (s *Service) Pools(ctx context.Context) (pools []execution.PoolStatus, err error) {
	if err := s.awaitSync(ctx); err != nil {
		return nil, err
	}
	s.tell(func(c *Core, _ time.Time) { pools = c.Pools() })
	return pools, nil
}

// PoolStatus tells how an environment's pool stands, and why runners do not come. Errors: NotFound.
func (s *Service) PoolStatus(ctx context.Context, environmentID string) (st execution.PoolStatus, err error) {
	if err := s.awaitSync(ctx); err != nil {
		return st, err
	}
	snap := s.deps.Snapshot()
	s.tell(func(c *Core, now time.Time) {
		s.look(c, now, environmentID)
		st, err = c.Pool(environmentID)
	})
	if err != nil {
		return st, err
	}
	job := environment.JobOf(environmentID)
	for a := range snap.AllocationsByJob(job.Namespace, job.ID) {
		if !a.Terminal() && a.Claim == nil && a.ClientStatus == drover.AllocClientPending {
			st.Starting++
		}
	}
	st.Queued = max(0, st.Size-st.Warm-st.Starting)
	if st.Warm < st.Size {
		tellError(snap, environmentID, &st)
	}
	return st, nil
}

// tellError says why the newest failed runner failed, unless a newer one came up; else why none can be placed.
func tellError(snap Snapshot, environmentID string, st *execution.PoolStatus) {
	job := environment.JobOf(environmentID)
	if failed := newestFailure(snap, job); failed != nil {
		st.LastError, st.Final, st.FailedAt = failure(failed), final(snap, failed), time.Unix(0, failed.ModifyTime).UTC()
		return
	}
	m, why := unplaced(snap, job)
	st.LastError, st.MissingDriver = why, m.MissingDriver()
}

// NodeLister is an optional power of a Snapshot.
type NodeLister interface {
	Nodes(prefix string) iter.Seq[*drover.Node]
}

// final reports whether waiting does not mend what made the runner fail, as another try on its node would only repeat it. If there are
// other nodes, one of them has said so, too: it might have what this one lacks.
func final(snap Snapshot, failed *drover.Allocation) bool {
	others := map[string]bool{}
	if s, ok := snap.(NodeLister); ok {
		for n := range s.Nodes("") {
			if n.ID != failed.NodeID && n.Ready() && hasDriver(n, failed.Job) {
				others[n.ID] = true
			}
		}
	}
	said := false
	for a := range snap.AllocationsByJob(failed.Namespace, failed.JobID) {
		if a.ClientStatus == drover.AllocClientFailed && ofPresent(snap, a) && failedForGood(a) {
			said = said || others[a.NodeID]
		}
	}
	return failedForGood(failed) && (said || len(others) == 0)
}

// hasDriver reports whether the node has the driver of the environment's job, well or not. Of a job that is not known any node will do.
func hasDriver(n *drover.Node, job *drover.Job) bool {
	if job == nil || len(job.TaskGroups) == 0 || len(job.TaskGroups[0].Tasks) == 0 {
		return true
	}
	d := n.Drivers[job.TaskGroups[0].Tasks[0].Driver]
	return d != nil && d.Detected
}

// failedForGood reports whether a task failed in a way that another try on the node would only repeat.
func failedForGood(a *drover.Allocation) bool {
	for _, state := range a.TaskStates {
		if slices.ContainsFunc(state.Events, (*drover.TaskEvent).Final) {
			return true
		}
	}
	return false
}

// newestFailure returns the newest failed runner, unless a newer one came up.
func newestFailure(snap Snapshot, job drover.NamespacedID) *drover.Allocation {
	var failed *drover.Allocation
	var up uint64
	for a := range snap.AllocationsByJob(job.Namespace, job.ID) {
		switch {
		case a.ClientStatus == drover.AllocClientRunning:
			up = max(up, a.CreateIndex)
		case a.ClientStatus == drover.AllocClientFailed && ofPresent(snap, a) && (failed == nil || a.CreateIndex > failed.CreateIndex):
			failed = a
		}
	}
	if failed == nil || failed.CreateIndex <= up {
		return nil
	}
	return failed
}

// ofPresent reports whether the runner was made for the environment as it is now: what an older image did wrong is over, and so is what
// happened to a deleted environment of the name.
func ofPresent(snap Snapshot, a *drover.Allocation) bool {
	job := snap.Job(a.Namespace, a.JobID)
	return job == nil || a.CreateIndex >= job.CreateIndex && sameRunner(a.Job, job)
}

// failure says why a runner failed, by the newest event that tells of a failure. Without one it is the client's
// description, or a sentence that says nothing more.
func failure(a *drover.Allocation) string {
	for _, state := range a.TaskStates {
		for _, e := range slices.Backward(state.Events) {
			switch e.Type {
			case drover.TaskDriverFailure, drover.TaskSetupFailure, drover.TaskFailedValidation,
				drover.TaskDownloadFailed, drover.TaskHookFailed, drover.TaskTerminated, drover.TaskRestoreFailed:
				return cmp.Or(e.DisplayMessage, e.Cause(), e.Message, e.Type)
			}
		}
	}
	return cmp.Or(a.ClientDescription, "the runner failed")
}

// unplaced is why the scheduler, when it looked last, found no place for runners; "" if it found one for all.
func unplaced(snap Snapshot, job drover.NamespacedID) (m *drover.AllocationMetric, why string) {
	var newest *drover.Evaluation
	for e := range snap.EvaluationsByJob(job.Namespace, job.ID) {
		looked := e.Status == drover.EvalComplete || len(e.FailedTGAllocs) > 0
		if looked && (newest == nil || e.ModifyIndex > newest.ModifyIndex || e.ModifyIndex == newest.ModifyIndex && len(e.FailedTGAllocs) > 0) {
			newest = e
		}
	}
	if newest == nil || len(newest.FailedTGAllocs) == 0 {
		return nil, ""
	}
	m = newest.FailedTGAllocs[environment.GroupName]
	if m == nil {
		return nil, "no node can take a runner"
	}
	switch {
	case len(m.QuotaExhausted) > 0:
		return m, fmt.Sprintf("quota %q is reached: %s", newest.QuotaLimitReached, strings.Join(m.QuotaExhausted, ", "))
	case m.NodesEvaluated == 0:
		return m, "no node can take a runner: there is no ready node"
	case m.NodesExhausted > 0:
		return m, fmt.Sprintf(
			"no node can take a runner: %d of %d are full (%v)", m.NodesExhausted, m.NodesEvaluated, counted(m.DimensionExhausted),
		)
	}
	return m, fmt.Sprintf(
		"no node can take a runner: %d of %d are unsuitable (%v)", m.NodesFiltered, m.NodesEvaluated, counted(m.ConstraintFiltered),
	)
}

// counted lists what nodes lacked, and how many of them.
func counted(lacks map[string]int) string {
	parts := make([]string, 0, len(lacks))
	for _, what := range slices.Sorted(maps.Keys(lacks)) {
		parts = append(parts, fmt.Sprintf("%s: %d", what, lacks[what]))
	}
	return strings.Join(parts, ", ")
}

// Kept lists the ids of claimed runners that this server keeps: what runs in them is its business.
func (s *Service) Kept(ctx context.Context) (runnerIDs []string, err error) {
	if err := s.awaitSync(ctx); err != nil {
		return nil, err
	}
	s.tell(func(c *Core, _ time.Time) { runnerIDs = c.Kept() })
	return runnerIDs, nil
}

// Adopted returns the ids of those that were handed out by another server, or before this process, and came since the last call.
func (s *Service) Adopted(ctx context.Context) (runnerIDs []string, err error) {
	if err := s.awaitSync(ctx); err != nil {
		return nil, err
	}
	s.tell(func(c *Core, _ time.Time) { runnerIDs = c.Adopted() })
	return runnerIDs, nil
}

// Adopting reports whether Adopted has some, or would have if the service had seen all that the state has.
func (s *Service) Adopting(ctx context.Context) (any bool, err error) {
	if err := s.awaitSync(ctx); err != nil {
		return false, err
	}
	snap := s.deps.Snapshot()
	s.tell(func(c *Core, now time.Time) {
		c.ReadClaimed(now, snap)
		any = len(c.adopted) > 0
	})
	return any, nil
}

// More receives when Adopted has some; it has one reader.
func (s *Service) More() <-chan struct{} { return s.adopted.C() }

// Keeps reports whether what became of an allocation that this server once kept, under the lease, is still its to tell. It is
// another's if one took the runner over, even if it was given back since.
func (s *Service) Keeps(allocID string, lease uint64) bool {
	a := s.deps.Snapshot().Allocation(allocID)
	if a == nil {
		return s.cfg.Lease == 0
	}
	return a.Lease == lease || a.Lease == s.cfg.Lease && lease == s.cfg.Former
}

// Keeper says who keeps an allocation's runner: this server, or nobody any more; another one if neither.
func (s *Service) Keeper(allocID string) (mine, nobody bool) {
	a := s.deps.Snapshot().Allocation(allocID)
	if a == nil {
		return false, true
	}
	mine = a.Lease == s.cfg.Lease
	return mine, !mine && s.deps.Live != nil && !s.deps.Live(a.Lease)
}

// Warm is how many runners of the environment this server can hand out at once.
func (s *Service) Warm(environmentID string) (n int) {
	s.tell(func(c *Core, _ time.Time) { n = c.Warm(environmentID) })
	return n
}

// Runners lists the warm and claimed runners of a namespace, "*" is all, sorted by id: of the environment with the id, of those with it in
// all namespaces, or (with "") of all. A key names one environment, whatever the namespace. Errors: NotFound; not of all namespaces.
func (s *Service) Runners(ctx context.Context, namespace, environmentID string) (runners []execution.Runner, err error) {
	if err := s.awaitSync(ctx); err != nil {
		return nil, err
	}
	key := ""
	switch {
	case execution.IsKey(environmentID):
		key = execution.Key(execution.SplitKey(environmentID))
	case environmentID != "" && namespace != "*":
		key = execution.Key(namespace, environmentID)
	}
	s.tell(func(c *Core, now time.Time) {
		if key != "" {
			s.look(c, now, key)
		}
		runners, err = c.Runners(key)
	})
	if key == "" {
		runners = slices.DeleteFunc(runners, func(r execution.Runner) bool {
			return namespace != "*" && execution.NamespaceOf(r.Key()) != cmp.Or(namespace, drover.DefaultNamespace) ||
				environmentID != "" && r.Environment != environmentID
		})
	}
	return runners, err
}
