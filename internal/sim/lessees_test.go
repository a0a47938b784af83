package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/exec/runner"
)

// shared is one log with three servers that hand out runners, each with a state that may be behind, and a stupid model of who
// got which. No server knows the time: leases that end too late are the worst case.
type shared struct {
	t       *rapid.T
	now     time.Time
	log     [][]byte
	head    *fsm.FSM // what a server has that is behind in nothing
	servers []*holder
	allocs  int
	given   map[string]uint64 // by allocation: the incarnation that answered a claim with it
}

// holder is a server with one life of its execution service.
type holder struct {
	id      string
	state   *fsm.FSM
	applied int
	lease   uint64
	core    *runner.Core
	writing []*runner.Handout
	journal []runner.Line
	copied  []runner.Line // of its journal, at some moment
	batches []runner.Batch
}

func (w *shared) propose(c command.Command) (any, error) {
	data, err := command.Encode(c)
	require.NoError(w.t, err)
	w.log = append(w.log, data)
	return w.head.Apply(uint64(len(w.log)), data)
}

func (w *shared) must(c command.Command) any {
	result, err := w.propose(c)
	require.NoError(w.t, err)
	return result
}

// catchUp applies up to n more entries at the server, and tells its core.
func (w *shared) catchUp(h *holder, n int) {
	for ; n > 0 && h.applied < len(w.log); n-- {
		_, _ = h.state.Apply(uint64(h.applied+1), w.log[h.applied])
		h.applied++
	}
	if h.core != nil {
		h.core.ReadAll(w.now, h.state.Store().Snapshot())
		h.core.Effects()
	}
}

// begin starts a life of the server: what its journal says is recorded, then it has an incarnation.
func (w *shared) begin(h *holder) {
	for _, line := range h.journal {
		if line.Claim != nil {
			claim := command.RunnerClaim{AllocID: line.Claim.AllocID, Claim: line.Claim.Claim}
			w.must(&command.RecordRunners{Incarnation: line.Lease, Claims: []command.RunnerClaim{claim}})
		} else {
			w.must(&command.RecordRunners{Incarnation: line.Lease, Released: []string{line.Release}})
		}
	}
	h.journal, h.writing, h.batches = nil, nil, nil
	h.lease = w.must(&command.BeginIncarnation{Server: h.id}).(command.Begun).Incarnation
	h.core = runner.NewCore(3, h.lease)
	w.catchUp(h, len(w.log))
}

func (w *shared) any(t *rapid.T) *holder { return rapid.SampledFrom(w.servers).Draw(t, "server") }

func (w *shared) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"": func(*rapid.T) { w.check() },
		"runner": func(t *rapid.T) {
			id := fmt.Sprintf("%036d", w.allocs)
			w.allocs++
			job := w.head.Store().Snapshot().Job(drover.DefaultNamespace, environment.JobOf("e").ID)
			a := &drover.Allocation{ID: id, Namespace: drover.DefaultNamespace, JobID: job.ID, NodeID: "n", TaskGroup: environment.GroupName}
			w.must(&command.ApplyPlans{Plans: []command.PlanCommit{{Job: job, Placed: []*drover.Allocation{a}}}})
			running := []exchange.AllocUpdate{{ID: id, ClientStatus: drover.AllocClientRunning}}
			w.must(&command.UpdateAllocs{Nodes: []command.NodeUpdates{{NodeID: "n", Updates: running}}})
		},
		"catch up": func(t *rapid.T) { w.catchUp(w.any(t), rapid.IntRange(1, 20).Draw(t, "entries")) },
		"claim": func(t *rapid.T) {
			h := w.any(t)
			turn, err := h.core.Claim(w.now, execution.ClaimRequest{Environment: "e", Wait: -1, IdleTimeout: 5 * time.Second})
			if err == nil {
				h.writing = append(h.writing, turn.Handout)
			}
		},
		"answer": func(t *rapid.T) {
			if h := w.any(t); len(h.writing) > 0 {
				w.answer(h)
			}
		},
		"claim and record": func(t *rapid.T) {
			h := w.any(t)
			turn, err := h.core.Claim(w.now, execution.ClaimRequest{Environment: "e", Wait: -1, IdleTimeout: 5 * time.Second})
			if err == nil {
				h.writing = append([]*runner.Handout{turn.Handout}, h.writing...)
				w.answer(h)
				h.batches = append([]runner.Batch{h.core.Batch()}, h.batches...)
				w.record(h, false)
			}
		},
		"batch": func(t *rapid.T) {
			h := w.any(t)
			h.batches = append(h.batches, h.core.Batch())
		},
		"record": func(t *rapid.T) {
			if h := w.any(t); len(h.batches) > 0 {
				w.record(h, rapid.Bool().Draw(t, "answer lost"))
			}
		},
		"time": func(t *rapid.T) {
			w.now = w.now.Add(time.Duration(rapid.IntRange(1, 6).Draw(t, "seconds")) * time.Second)
			h := w.any(t)
			for _, id := range h.core.Expire(w.now) {
				h.journal = append(h.journal, runner.Line{Release: id, Lease: h.lease})
				h.core.Released(id, true)
			}
		},
		"killed":       func(t *rapid.T) { w.begin(w.any(t)) },
		"copy journal": func(t *rapid.T) { h := w.any(t); h.copied = slices.Clone(h.journal) },
		"killed, and its journal copied back": func(t *rapid.T) {
			h := w.any(t)
			h.journal = slices.Clone(h.copied)
			w.begin(h)
		},
		"given up": func(t *rapid.T) { // it may run on, and know nothing of it
			h, heir := w.any(t), w.any(t)
			if h != heir {
				w.must(&command.EndIncarnation{Incarnation: h.lease, Heir: heir.lease})
			}
		},
		"leaves": func(t *rapid.T) {
			h := w.any(t)
			w.leave(h, w.any(t))
			w.begin(h)
		},
	}
}

// answer writes a hand-out's line and answers the claim.
func (w *shared) answer(h *holder) {
	handout := h.writing[0]
	h.writing = h.writing[1:]
	h.journal = append(h.journal, runner.Line{Claim: &handout.Line, Lease: h.lease})
	got, err := h.core.Written(handout, nil)
	if err != nil {
		return // it ended in between
	}
	by, again := w.given[got.AllocID]
	require.False(w.t, again, "runner %s was handed out by incarnation %d, and by %d", got.AllocID, by, h.lease)
	w.given[got.AllocID] = h.lease
}

// record has the log record a batch; the server may not hear of it.
func (w *shared) record(h *holder, lost bool) {
	b := h.batches[0]
	h.batches = h.batches[1:]
	c := &command.RecordRunners{Incarnation: h.lease}
	for _, claim := range b.Claims {
		c.Claims = append(c.Claims, command.RunnerClaim{AllocID: claim.AllocID, Claim: claim.Claim})
	}
	for _, d := range b.Demands {
		pool := command.PoolDemand{Namespace: drover.DefaultNamespace, JobID: environment.JobOf(d.Environment).ID, Demand: d.Runners}
		c.Demands = append(c.Demands, pool)
	}
	for _, of := range b.Releases {
		c.Released = append(c.Released, of.AllocIDs...)
	}
	before := w.head.Store().Snapshot()
	results := w.must(c).([]command.ClaimResult)
	for _, id := range c.Released {
		if was := before.Allocation(id); was.Lease != h.lease {
			require.Equal(w.t, was.DesiredStatus, w.head.Store().Snapshot().Allocation(id).DesiredStatus, "who lost runner %s stops it", id)
		}
	}
	if lost {
		h.core.NotRecorded(b)
		return
	}
	errs := make([]error, len(results))
	for i, r := range results {
		errs[i] = r.Err
	}
	h.core.ClaimsRecorded(b.Claims, errs)
	for _, of := range b.Releases {
		h.core.ReleasesRecorded(of.AllocIDs)
	}
}

// leave is what a server does that stops in good order: it answers no more claims, records all, and returns what is left.
func (w *shared) leave(h, heir *holder) {
	for _, handout := range h.writing {
		h.journal = append(h.journal, runner.Line{Claim: &handout.Line, Lease: h.lease}) // the line may be there
		_, err := h.core.Written(handout, drover.Errorf(drover.NotLeader, "it ends"))
		require.Error(w.t, err)
	}
	h.writing = nil
	for range h.batches {
		w.record(h, false)
	}
	for b := h.core.Batch(); !b.Empty(); b = h.core.Batch() {
		h.batches = append(h.batches, b)
		w.record(h, false)
	}
	if heir != h {
		w.must(&command.EndIncarnation{Incarnation: h.lease, Heir: heir.lease, Returned: true})
	}
}

// check: what was handed out is its claimer's, or ends.
func (w *shared) check() {
	s := w.head.Store().Snapshot()
	for id, by := range w.given {
		if a := s.Allocation(id); a.Claim == nil && !a.Terminal() {
			require.Equal(w.t, by, a.Lease, "runner %s was handed out, and another may hand it out", id)
		}
	}
	for a := range s.Allocations("*", "") {
		if len(slices.Collect(s.Lessees())) == 0 {
			break // whoever begins stops them
		}
		if !a.Terminal() && a.ClientStatus == drover.AllocClientRunning {
			require.NotNil(w.t, s.Lessee(a.Lease), "nobody keeps runner %s", a.ID)
		}
	}
}

// Three servers hand out the runners of one pool while they are killed, given up though they run on, fall behind, and have an
// old journal put in place of theirs. No runner is handed out twice, and who lost one does not stop it.
func TestRunnersOfSeveralServersAreHandedOutOnce(t *testing.T) {
	t.Parallel()
	job, err := environment.ToJob(environment.Canonicalize(execution.Environment{ID: "e", Image: "host", PoolSize: 2}), environment.Options{})
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		w := &shared{t: t, now: time.Unix(1e9, 0), head: fsm.New(store.New(), nil), given: map[string]uint64{}}
		w.must(&command.RegisterJob{Job: job})
		for i := range 3 {
			h := &holder{id: fmt.Sprintf("s%d", i), state: fsm.New(store.New(), nil)}
			w.servers = append(w.servers, h)
			w.begin(h)
		}
		t.Repeat(w.actions())
	})
}
