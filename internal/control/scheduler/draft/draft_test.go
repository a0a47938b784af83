package draft

import (
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/id"
)

var now = time.Unix(1_800_000_000, 0)

// state is what a draft looks up.
type state struct {
	nodes  map[string]*drover.Node
	allocs []*drover.Allocation
	evals  []*drover.Evaluation
}

func (s *state) Index() uint64               { return 7 }
func (s *state) Node(id string) *drover.Node { return s.nodes[id] }
func (s *state) AllocationsByNode(nodeID string) iter.Seq[*drover.Allocation] {
	return func(yield func(*drover.Allocation) bool) {
		for _, a := range s.allocs {
			if a.NodeID == nodeID && !yield(a) {
				return
			}
		}
	}
}

func (s *state) EvaluationsByJob(_, jobID string) iter.Seq[*drover.Evaluation] {
	return func(yield func(*drover.Evaluation) bool) {
		for _, e := range s.evals {
			if e.JobID == jobID && !yield(e) {
				return
			}
		}
	}
}

func newDraft(s *state) *Draft {
	if s.nodes == nil {
		s.nodes = map[string]*drover.Node{}
	}
	for name, status := range map[string]string{
		"up": drover.NodeStatusReady, "down": drover.NodeStatusDown, "away": drover.NodeStatusDisconnected,
	} {
		s.nodes[name] = &drover.Node{ID: name, Status: status}
	}
	e := &drover.Evaluation{ID: "eval", Namespace: "default", JobID: "web", Priority: 60, Type: drover.JobTypeService}
	return New(s, e, &drover.Job{ID: "web", Version: 3}, now, id.NewSeeded(1))
}

func on(node string) *drover.Allocation {
	return &drover.Allocation{ID: "a-" + node, NodeID: node, JobID: "web", ClientStatus: drover.AllocClientRunning}
}

func TestNewDraftsAreEmpty(t *testing.T) {
	t.Parallel()
	d := newDraft(&state{})
	require.True(t, d.Plan.Empty())
	require.Equal(t, "eval", d.Plan.EvalID)
	require.Equal(t, 60, d.Plan.Priority)
	require.EqualValues(t, 7, d.Plan.SnapshotIndex)
	unknown := New(&state{}, &drover.Evaluation{}, nil, now, id.NewSeeded(1))
	require.False(t, unknown.Plan.AllAtOnce, "a job that is unknown wants nothing")
}

// What ends on a node that answers is stopped, and on one that does not it is lost; the original is never changed.
func TestEndIsStopOrLoss(t *testing.T) {
	t.Parallel()
	for node, lost := range map[string]bool{"up": false, "down": true, "away": true, "unknown": true} {
		d := newDraft(&state{})
		a := on(node)
		d.End(a, WhyMigrating)
		require.Equal(t, *on(node), *a, "the allocation of the store stays as it is")
		require.Len(t, d.Plan.NodeUpdate[node], 1)
		got := d.Plan.NodeUpdate[node][0]
		require.Equal(t, drover.AllocDesiredStop, got.DesiredStatus)
		require.Equal(t, now.UnixNano(), got.ModifyTime)
		if lost {
			require.Equal(t, drover.AllocClientLost, got.ClientStatus, node)
			require.Equal(t, WhyLost, got.DesiredDescription)
		} else {
			require.Equal(t, drover.AllocClientRunning, got.ClientStatus, "what became of it its node says")
			require.Equal(t, WhyMigrating, got.DesiredDescription)
		}
		require.Equal(t, lost, d.Lost(node))
	}
}

func TestWhatStaysWanted(t *testing.T) {
	t.Parallel()
	d := newDraft(&state{})
	d.MarkUnknown(on("away"), "later")
	require.Equal(t, drover.AllocClientUnknown, d.Plan.NodeUpdate["away"][0].ClientStatus)
	require.Equal(t, "later", d.Plan.NodeUpdate["away"][0].FollowupEvalID)
	require.Empty(t, d.Plan.NodeUpdate["away"][0].DesiredStatus, "it is not stopped")
	d.Await(on("up"), "later")
	require.Equal(t, "later", d.Plan.NodeUpdate["up"][0].FollowupEvalID)
	waiting := on("up")
	waiting.FollowupEvalID = "later"
	d.Await(waiting, "later")
	require.Len(t, d.Plan.NodeUpdate["up"], 1, "what it awaits already is not written again")
	changed := d.ChangeInPlace(on("up"))
	require.Equal(t, []*drover.Allocation{changed}, d.Plan.NodeAllocation["up"])
	require.EqualValues(t, 3, changed.Version())
	require.Equal(t, "eval", changed.EvalID)
}

// A node is looked up once, also one that is not there.
func TestNodesAreLookedUpOnce(t *testing.T) {
	t.Parallel()
	s := &state{}
	d := newDraft(s)
	require.Nil(t, d.Node("new"))
	s.nodes["new"] = &drover.Node{ID: "new"}
	require.Nil(t, d.Node("new"))
	require.NotNil(t, d.Node("up"))
	delete(s.nodes, "up")
	require.NotNil(t, d.Node("up"))
}

// A follow-up that comes at about the time, and not later, is shared: one of the plan or one that is stored.
func TestWakeSharesFollowUps(t *testing.T) {
	t.Parallel()
	at := now.Add(time.Minute)
	for name, c := range map[string]struct {
		stored drover.Evaluation
		shared bool
	}{
		"same time":         {drover.Evaluation{Status: drover.EvalPending, WaitUntil: at}, true},
		"a little earlier":  {drover.Evaluation{Status: drover.EvalPending, WaitUntil: at.Add(-FollowUpWindow)}, true},
		"much earlier":      {drover.Evaluation{Status: drover.EvalPending, WaitUntil: at.Add(-FollowUpWindow - 1)}, false},
		"a little later":    {drover.Evaluation{Status: drover.EvalPending, WaitUntil: at.Add(1)}, false},
		"done":              {drover.Evaluation{Status: drover.EvalComplete, WaitUntil: at}, false},
		"waits for nothing": {drover.Evaluation{Status: drover.EvalPending}, false},
		"of another job":    {drover.Evaluation{Status: drover.EvalPending, WaitUntil: at, JobID: "other"}, false},
	} {
		stored := c.stored
		stored.ID = "stored"
		if stored.JobID == "" {
			stored.JobID = "web"
		}
		d := newDraft(&state{evals: []*drover.Evaluation{&stored}})
		got := d.Wake(at, drover.TriggerRetryFailedAlloc, "why")
		require.Equal(t, c.shared, got == "stored", name)
		if c.shared {
			require.Empty(t, d.FollowUps)
			continue
		}
		require.Len(t, d.FollowUps, 1)
		f := d.FollowUps[0]
		require.Equal(t, got, f.ID)
		require.Equal(t, at, f.WaitUntil)
		require.Equal(t, "eval", f.PreviousEval)
		require.Equal(t, drover.TriggerRetryFailedAlloc, f.TriggeredBy)
		require.Equal(t, got, d.Wake(at, drover.TriggerRollingUpdate, "other"), "the plan's own serves too")
		require.NotEqual(t, got, d.Wake(at.Add(time.Hour), drover.TriggerRollingUpdate, "later"))
	}
}

func victim(id, job string) *drover.Allocation {
	return &drover.Allocation{
		ID: id, NodeID: "up", Namespace: "default", JobID: job,
		Job: &drover.Job{ID: job, Priority: 20, Type: drover.JobTypeBatch, ModifyIndex: 9},
	}
}

// Each job of which something is evicted is looked at once, a moment later.
func TestEvict(t *testing.T) {
	t.Parallel()
	d := newDraft(&state{})
	for _, v := range []*drover.Allocation{victim("1", "low"), victim("2", "low"), victim("3", "lower")} {
		d.Evict(v)
	}
	require.Len(t, d.Plan.NodePreemptions["up"], 3)
	for _, a := range d.Plan.NodePreemptions["up"] {
		require.Equal(t, drover.AllocDesiredEvict, a.DesiredStatus)
		require.Equal(t, "Preempted by job web", a.DesiredDescription)
	}
	jobs := []string{}
	for _, f := range d.FollowUps {
		jobs = append(jobs, f.JobID)
		require.Equal(t, 20, f.Priority)
		require.Equal(t, now.Add(headStart), f.WaitUntil)
		require.Equal(t, drover.TriggerPreemption, f.TriggeredBy)
	}
	slices.Sort(jobs)
	require.Equal(t, []string{"low", "lower"}, jobs)
}

// What was evicted for the job learns who took its place, once.
func TestNameEvicted(t *testing.T) {
	t.Parallel()
	evicted := func(id, text, by string) *drover.Allocation {
		v := victim(id, "low")
		v.DesiredStatus, v.DesiredDescription, v.PreemptedByAllocation = drover.AllocDesiredEvict, text, by
		return v
	}
	d := newDraft(&state{allocs: []*drover.Allocation{
		evicted("ours", "Preempted by job web", ""), evicted("named", "Preempted by job web", "x"),
		evicted("theirs", "Preempted by job other", ""), victim("lives", "low"),
	}})
	d.NameEvicted()
	require.Empty(t, d.Plan.NodePreemptions, "nothing was placed")
	d.Plan.NodeAllocation["up"] = []*drover.Allocation{{ID: "changed", CreateIndex: 5}, {ID: "new"}}
	d.NameEvicted()
	require.Len(t, d.Plan.NodePreemptions["up"], 1)
	got := d.Plan.NodePreemptions["up"][0]
	require.Equal(t, "ours", got.ID)
	require.Equal(t, "new", got.PreemptedByAllocation)
	require.Equal(t, []string{"ours"}, d.Plan.NodeAllocation["up"][1].PreemptedAllocations)
}

func TestUpdatesAreCountedByGroup(t *testing.T) {
	t.Parallel()
	d := newDraft(&state{})
	d.Updates("g").Stop++
	d.Updates("g").Stop++
	d.Updates("h").Place++
	require.Equal(t, map[string]*drover.DesiredUpdates{"g": {Stop: 2}, "h": {Place: 1}}, d.Annotations)
}
