package runner

import (
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/environment"
)

// world is control and the disk, as simple as they can be, and a stupid model of what the core should know.
type world struct {
	t       *rapid.T
	now     time.Time
	job     *drover.Job
	allocs  []*drover.Allocation // in the order of their making
	journal []Line
	core    *Core
	line    []*Waiter // claims that wait, longest first
	served  []*Waiter // of them, those that a runner is reserved for
	writing []*Handout
	batches []Batch         // taken, and not answered by control
	mine    map[string]bool // allocations whose claim was answered; false: released
}

func (w *world) Index() uint64                { return 1 }
func (w *world) Job(_, id string) *drover.Job { return map[string]*drover.Job{w.job.ID: w.job}[id] }
func (w *world) EvaluationsByJob(_, _ string) iter.Seq[*drover.Evaluation] {
	return slices.Values([]*drover.Evaluation(nil))
}
func (w *world) Jobs(_, _ string) iter.Seq[*drover.Job] { return slices.Values([]*drover.Job{w.job}) }
func (w *world) AllocationsByJob(_, _ string) iter.Seq[*drover.Allocation] {
	return slices.Values(w.allocs)
}

func (w *world) Allocation(id string) *drover.Allocation {
	for _, a := range w.allocs {
		if a.ID == id {
			return a
		}
	}
	return nil
}

// change replaces an allocation, as what is in the state never changes.
func (w *world) change(id string, f func(a *drover.Allocation)) {
	for i, a := range w.allocs {
		if a.ID == id {
			next := *a
			f(&next)
			w.allocs[i] = &next
		}
	}
}

// effects performs what the core asks for.
func (w *world) effects() {
	for _, s := range w.core.Effects().Served {
		require.Same(w.t, w.line[0], s, "first come, first served")
		w.line, w.served = w.line[1:], append(w.served, s)
	}
}

func (w *world) turn(turn Turn, err error) {
	switch {
	case err != nil:
		require.Contains(w.t, []drover.Code{drover.Exhausted, drover.NotFound}, drover.CodeOf(err))
	case turn.Waiter != nil:
		w.line = append(w.line, turn.Waiter)
	default:
		w.writing = append(w.writing, turn.Handout)
	}
	w.effects()
}

// take removes one of the list.
func take[T any](t *rapid.T, list *[]T) (x T, ok bool) {
	if len(*list) == 0 {
		return x, false
	}
	i := rapid.IntRange(0, len(*list)-1).Draw(t, "which")
	x = (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return x, true
}

// boot starts a process on what is left: nothing but control and the journal.
func (w *world) boot() {
	w.core, w.line, w.served, w.writing, w.batches = NewCore(3, 0), nil, nil, nil, nil
	w.core.Load(w.now, w, slices.Clone(w.journal))
	w.core.ReadAll(w.now, w)
	w.effects()
}

func (w *world) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"": func(*rapid.T) { w.check() },
		"start": func(*rapid.T) {
			id := fmt.Sprintf("%036d", len(w.allocs))
			w.allocs = append(w.allocs, &drover.Allocation{
				ID: id, JobID: w.job.ID, Namespace: drover.DefaultNamespace, NodeID: "node",
				ClientStatus: drover.AllocClientRunning, DesiredStatus: drover.AllocDesiredRun,
			})
			w.see(id)
		},
		"end": func(t *rapid.T) {
			if len(w.allocs) > 0 {
				id := rapid.SampledFrom(w.allocs).Draw(t, "allocation").ID
				w.change(id, func(a *drover.Allocation) { a.ClientStatus = drover.AllocClientFailed })
				if rapid.Bool().Draw(t, "seen") {
					w.see(id)
				}
			}
		},
		"see all": func(*rapid.T) { w.core.ReadAll(w.now, w); w.effects() },
		"claim": func(t *rapid.T) {
			wait := time.Duration(rapid.IntRange(-1, 1).Draw(t, "wait"))
			w.turn(w.core.Claim(w.now, execution.ClaimRequest{Environment: "e", Wait: wait, IdleTimeout: 10 * time.Second}))
		},
		"accept": func(t *rapid.T) {
			if x, ok := take(t, &w.served); ok {
				w.turn(w.core.Accept(w.now, x))
			}
		},
		"leave": func(t *rapid.T) {
			from := &w.line
			if rapid.Bool().Draw(t, "served") {
				from = &w.served
			}
			if x, ok := take(t, from); ok {
				w.core.Leave(x)
				w.effects()
			}
		},
		"write": w.write,
		"release": func(t *rapid.T) {
			for _, id := range w.known() {
				if w.mine[id] && rapid.Bool().Draw(t, "this") {
					w.release(t, id)
					return
				}
			}
		},
		"expire": func(t *rapid.T) {
			w.now = w.now.Add(time.Duration(rapid.IntRange(0, 6).Draw(t, "seconds")) * time.Second)
			for _, id := range w.core.Expire(w.now) {
				w.written(t, id)
			}
			w.effects()
		},
		"batch":  func(*rapid.T) { w.batches = append(w.batches, w.core.Batch()); w.dropped() },
		"record": w.record,
		"crash":  func(*rapid.T) { w.boot() },
	}
}

func (w *world) see(id string) {
	w.core.Observe(w.now, w, []drover.Event{{Topic: drover.TopicAllocation, Key: id}})
	w.effects()
}

// known lists the allocations that were ever answered, in order.
func (w *world) known() (ids []string) {
	for _, a := range w.allocs {
		if _, ok := w.mine[a.ID]; ok {
			ids = append(ids, a.ID)
		}
	}
	return ids
}

// write writes a hand-out's line, or fails to, and answers the claim.
func (w *world) write(t *rapid.T) {
	h, ok := take(t, &w.writing)
	if !ok {
		return
	}
	var failed error
	if rapid.IntRange(0, 5).Draw(t, "disk full") == 0 {
		failed = drover.Errorf(drover.Exhausted, "no space left on device")
	} else {
		w.journal = append(w.journal, Line{Claim: &h.Line})
	}
	r, err := w.core.Written(h, failed)
	w.effects()
	if err != nil {
		require.Contains(w.t, []drover.Code{drover.Unavailable, drover.Gone}, drover.CodeOf(err))
		return
	}
	_, before := w.mine[r.AllocID]
	require.False(w.t, before, "runner %s was handed out twice", r.AllocID)
	w.mine[r.AllocID] = true
}

func (w *world) release(t *rapid.T, id string) {
	w.mine[id] = false
	_, err := w.core.Release(RunnerID("e", id), drover.Errorf(drover.Gone, "%w", ErrStopped))
	if err == nil {
		w.written(t, id)
	}
	w.effects()
}

// written writes a release to the journal, or fails to.
func (w *world) written(t *rapid.T, id string) {
	written := rapid.IntRange(0, 5).Draw(t, "disk full") > 0
	if written {
		w.journal = append(w.journal, Line{Release: id})
	}
	w.core.Released(id, written)
	if _, ok := w.mine[id]; ok {
		w.mine[id] = false
	}
}

// dropped lets the journal forget the claims that need no record.
func (w *world) dropped() {
	for _, id := range w.batches[len(w.batches)-1].Dropped {
		w.forget(id, true)
	}
}

// record is control's answer to a batch.
func (w *world) record(t *rapid.T) {
	b, ok := take(t, &w.batches)
	switch {
	case !ok:
		return
	case rapid.Bool().Draw(t, "no leader"):
		w.core.NotRecorded(b)
		return
	}
	results := make([]error, len(b.Claims))
	for i := range b.Claims {
		if a := w.Allocation(b.Claims[i].AllocID); a.Terminal() {
			results[i] = drover.Errorf(drover.Conflict, "ended")
		} else {
			w.change(a.ID, func(a *drover.Allocation) { a.Claim = &b.Claims[i].Claim })
		}
	}
	w.core.ClaimsRecorded(b.Claims, results)
	for i := range b.Claims {
		w.forget(b.Claims[i].AllocID, true)
	}
	for _, of := range b.Releases {
		for _, id := range of.AllocIDs {
			w.change(id, func(a *drover.Allocation) { a.DesiredStatus = drover.AllocDesiredStop })
			w.forget(id, false)
		}
		w.core.ReleasesRecorded(of.AllocIDs)
	}
	w.effects()
}

func (w *world) forget(id string, claimOnly bool) {
	w.journal = slices.DeleteFunc(w.journal, func(l Line) bool {
		return l.Claim != nil && l.Claim.AllocID == id || !claimOnly && l.Release == id
	})
}

// check compares the core with what the model says.
func (w *world) check() {
	st, err := w.core.Pool("e")
	require.NoError(w.t, err)
	require.Equal(w.t, len(w.line), st.Waiting)
	require.True(w.t, st.Warm == 0 || st.Waiting == 0, "nobody waits while a runner is warm")
	require.LessOrEqual(w.t, st.Waiting, 3)
	all, err := w.core.Runners("e")
	require.NoError(w.t, err)
	for _, r := range all {
		mine, ever := w.mine[r.AllocID]
		require.False(w.t, ever && r.State == execution.RunnerWarm, "runner %s was handed out and is warm", r.AllocID)
		require.True(w.t, mine || !ever || w.unwritten(r.AllocID), "runner %s was released and is known", r.AllocID)
	}
	for _, id := range w.known() {
		if _, err := w.core.Runner(RunnerID("e", id)); w.mine[id] && !w.Allocation(id).Terminal() {
			require.NoError(w.t, err, "runner %s is its claimer's while it lives", id)
		}
	}
}

// unwritten reports whether the journal could not be told of the release: then a process that was started since may
// take the runner as claimed.
func (w *world) unwritten(id string) bool {
	return !slices.ContainsFunc(w.journal, func(l Line) bool { return l.Release == id })
}

// The core, over random histories with crashes and full disks, does what the stupid model says; above all it never hands
// a runner out twice.
func TestCore(t *testing.T) {
	t.Parallel()
	job, err := environment.ToJob(environment.Canonicalize(execution.Environment{ID: "e", Image: "host", PoolSize: 2}), environment.Options{})
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, now: time.Unix(1e9, 0), job: job, mine: map[string]bool{}}
		w.boot()
		t.Repeat(w.actions())
	})
}

// TestARunnerThatWasHandedOutIsNotWarm: invariant 4 is checked before each handout, whatever stands on the stack.
func TestARunnerThatWasHandedOutIsNotWarm(t *testing.T) {
	t.Parallel()
	c := NewCore(1, 0)
	alloc := &drover.Allocation{ID: "a"}
	require.True(t, c.mayHandOut("a", &runner{alloc: alloc, phase: warm}))
	for name, r := range map[string]*runner{
		"unknown":           nil,
		"reserved":          {alloc: alloc, phase: reserved},
		"handed":            {alloc: alloc, phase: handed},
		"claimed":           {alloc: alloc, phase: claimed, claim: &drover.Claim{}},
		"warm, and claimed": {alloc: alloc, phase: warm, claim: &drover.Claim{}},
		"gone":              {alloc: alloc, phase: gone},
	} {
		require.PanicsWithValue(t, "invariant 4 (handed out once): a: it was warm for a claim, and had been handed out or had ended",
			func() { c.mayHandOut("a", r) }, name)
	}
}

// TestAnEnvironmentThatIsPutAgain: claimed runners end with their environment, also in the state, where it was put again before anybody
// stopped them.
func TestAnEnvironmentThatIsPutAgain(t *testing.T) {
	t.Parallel()
	job, err := environment.ToJob(execution.Environment{ID: "python", Image: "host", PoolSize: 2}, environment.Options{})
	require.NoError(t, err)
	job.ModifyIndex = 1
	w := &world{now: time.Unix(1, 0), job: job}
	for i := range 2 {
		w.allocs = append(w.allocs, &drover.Allocation{
			ID: fmt.Sprintf("%036d", i), JobID: job.ID, Namespace: drover.DefaultNamespace, NodeID: "node",
			ClientStatus: drover.AllocClientRunning, DesiredStatus: drover.AllocDesiredRun,
		})
	}
	claim := w.allocs[0].ID
	w.allocs[0].Claim = &drover.Claim{RunnerID: RunnerID("python", claim), IdleTimeout: time.Minute}
	c := NewCore(3, 0)
	c.ReadAll(w.now, w)
	stopped, again := *job, *job
	stopped.Stop, stopped.ModifyIndex, again.ModifyIndex = true, 2, 3
	w.job = &stopped
	c.ReadEnvironment(w.now, w, "python")
	w.job = &again
	c.ReadAll(w.now, w)
	_, err = c.Runner(RunnerID("python", claim))
	require.ErrorContains(t, err, "the environment was deleted")
	require.Equal(t, []Releases{{AllocIDs: []string{claim}, Reason: "the environment was deleted"}}, c.Batch().Releases)
	turn, err := c.Claim(w.now, execution.ClaimRequest{Environment: "python"})
	require.NoError(t, err)
	require.NotNil(t, turn.Handout, "the warm one can be claimed")
}
