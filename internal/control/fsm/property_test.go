package fsm

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/snapshot"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/secrets"
)

// draw makes a random command over a handful of ids, so that they meet often.
type draw struct{ t *rapid.T }

func (d draw) id(kind string, n int) string {
	return fmt.Sprintf("%s%d", kind, rapid.IntRange(0, n-1).Draw(d.t, kind))
}

func (d draw) pick(what string, of ...string) string { return rapid.SampledFrom(of).Draw(d.t, what) }

func (d draw) job() *drover.Job {
	j := job(d.id("j", 4), d.pick("type", "service", "batch", "system"), rapid.IntRange(1, 2).Draw(d.t, "count"))
	if rapid.Bool().Draw(d.t, "pool") {
		j.TaskGroups[0].Pool = &drover.WarmPool{Size: 1}
	}
	if rapid.Bool().Draw(d.t, "sticky") {
		j.TaskGroups[0].Volumes = map[string]*drover.VolumeRequest{"d": {Type: "host", Source: d.id("name", 3), Sticky: true}}
	}
	if rapid.IntRange(0, 9).Draw(d.t, "child") == 0 {
		j.ParentID = "j0"
	}
	return j
}

func (d draw) evals() []*drover.Evaluation {
	var out []*drover.Evaluation
	for range rapid.IntRange(0, 2).Draw(d.t, "evals") {
		n := rapid.IntRange(0, 5).Draw(d.t, "e")
		e := eval(fmt.Sprintf("e%d", n), fmt.Sprintf("j%d", n%4), d.pick("status", "pending", "blocked", "complete", "failed"))
		e.QueuedAllocations = map[string]int{"g": rapid.IntRange(0, 3).Draw(d.t, "queued")}
		out = append(out, e)
	}
	return out
}

func (d draw) plan(s *store.Snapshot) command.Command {
	j := s.Job("default", d.id("j", 4))
	if j == nil {
		return &command.Barrier{}
	}
	p := &command.ApplyPlans{Time: d.time(), Evals: d.evals(), Plans: []command.PlanCommit{{EvalID: "e", Job: j}}}
	c := &p.Plans[0]
	for range rapid.IntRange(0, 3).Draw(d.t, "placed") {
		a := placed(d.id("a", 12), j.ID)
		if s.Allocation(a.ID) != nil && s.Allocation(a.ID).JobID != j.ID {
			continue
		}
		a.PreviousAllocation = d.pick("previous", "", "a0", "a1")
		if rapid.Bool().Draw(d.t, "deployed") {
			a.DeploymentID = "d0"
			a.DeploymentStatus = &drover.AllocDeploymentStatus{Canary: rapid.Bool().Draw(d.t, "canary")}
		}
		a.NodeID = homeOf(a.ID)
		c.Placed = append(c.Placed, a)
	}
	for range rapid.IntRange(0, 2).Draw(d.t, "stopped") {
		c.Stopped = append(c.Stopped, command.StoppedAlloc{ID: d.id("a", 12), ClientStatus: d.pick("client", "", "lost", "unknown")})
	}
	if rapid.Bool().Draw(d.t, "preempt") {
		c.Preempted = []command.PreemptedAlloc{{ID: d.id("a", 12), By: "a0"}}
	}
	if rapid.Bool().Draw(d.t, "deploy") {
		c.Deployment = &drover.Deployment{
			ID: "d0", Namespace: "default", JobID: j.ID, JobVersion: j.Version, Status: drover.DeploymentRunning,
			TaskGroups: map[string]*drover.DeploymentState{"g": {DesiredTotal: 1, ProgressDeadline: time.Second}},
		}
	}
	return p
}

func (d draw) time() int64 { return rapid.Int64Range(1, 1e12).Draw(d.t, "time") }

// homeOf is the one node on which the allocation may ever be placed.
func homeOf(allocID string) string { return fmt.Sprintf("n%d", allocID[len(allocID)-1]%3) }

// incarnation is a live one, or none.
func (d draw) incarnation(s *store.Snapshot) uint64 {
	of := []uint64{0, 1}
	for l := range s.Lessees() {
		of = append(of, l.Incarnation)
	}
	return rapid.SampledFrom(of).Draw(d.t, "incarnation")
}

func (d draw) leases(s *store.Snapshot) command.Command {
	switch rapid.IntRange(0, 2).Draw(d.t, "of leases") {
	case 0:
		return &command.BeginIncarnation{Server: d.id("s", 3), Time: d.time(), Evals: d.evals()}
	case 1:
		return &command.EndIncarnation{
			Incarnation: d.incarnation(s), Heir: d.incarnation(s), Returned: rapid.Bool().Draw(d.t, "returned"),
			Claimed: rapid.Bool().Draw(d.t, "claimed"), Time: d.time(),
		}
	}
	return &command.RecordRunners{
		Incarnation: d.incarnation(s), Time: d.time(), Released: []string{d.id("a", 12)}, Reason: "released",
		Claims:  []command.RunnerClaim{{AllocID: d.id("a", 12), Claim: drover.Claim{RunnerID: d.id("r", 3)}}},
		Demands: []command.PoolDemand{{Namespace: "default", JobID: d.id("j", 4), Demand: rapid.IntRange(0, 3).Draw(d.t, "demand")}},
	}
}

func (d draw) updates() command.Command {
	c := &command.UpdateAllocs{Time: d.time(), Evals: d.evals()}
	for range rapid.IntRange(1, 3).Draw(d.t, "updates") {
		u := exchange.AllocUpdate{ID: d.id("a", 12), ClientStatus: d.pick("to", "pending", "running", "complete", "failed", "")}
		u.Order = rapid.Uint64Range(0, 20).Draw(d.t, "order")
		if rapid.Bool().Draw(d.t, "healthy") {
			u.DeploymentStatus = &drover.AllocDeploymentStatus{Healthy: new(true), Timestamp: time.Unix(9, 0).UTC()}
		}
		c.Nodes = append(c.Nodes, command.NodeUpdates{NodeID: homeOf(u.ID), Updates: []exchange.AllocUpdate{u}})
	}
	return c
}

func (d draw) dispatch() command.Command {
	j := job(d.id("j0/dispatch-", 6), "batch", 1)
	j.ParentID, j.Dispatched, j.DispatchIdempotencyToken = "j0", true, d.pick("token", "a", "a\x00b", "b")
	return &command.DispatchJob{Register: command.RegisterJob{Job: j, EnforceIndex: true, Eval: eval("e-"+j.ID, j.ID, drover.EvalPending)}}
}

// rootKeys draws what the keyring does.
func (d draw) rootKeys() command.Command {
	id := d.id("k", 4)
	switch rapid.IntRange(0, 3).Draw(d.t, "of root keys") {
	case 0:
		return &command.DeleteRootKeys{KeyIDs: []string{id}, Force: rapid.Bool().Draw(d.t, "force")}
	case 1:
		return &command.SetRootKeyState{
			KeyID: id, Time: d.time(), From: secrets.RootKeyState(d.pick("from", "prepublished", "rekeying", "active", "inactive")),
			To: secrets.RootKeyState(d.pick("to", "active", "deprecated")),
		}
	}
	return &command.PutRootKey{
		Key: &secrets.RootKey{
			RootKeyMeta: secrets.RootKeyMeta{KeyID: id, State: secrets.RootKeyState(d.pick("state", "active", "prepublished"))},
			Wrapped:     []secrets.Wrapped{{Provider: "aead", KeyID: "kek", Ciphertext: []byte{1, 2}}},
		},
		Time: d.time(), Full: rapid.Bool().Draw(d.t, "full"), First: rapid.Bool().Draw(d.t, "first"),
	}
}

// variables draws a change of a variable.
func (d draw) variables() command.Command {
	c := &command.ChangeVariable{
		Op: command.VariableOp(rapid.IntRange(0, 6).Draw(d.t, "op")), Time: d.time(), Check: rapid.Bool().Draw(d.t, "check"),
		CheckIndex: uint64(rapid.IntRange(0, 30).Draw(d.t, "at")), LockID: d.pick("lock", "", "l1", "l2"),
		Var: &secrets.SealedVariable{Namespace: d.pick("namespace", "default", "none"), Path: d.id("p", 3), KeyID: d.id("k", 4)},
	}
	if rapid.Bool().Draw(d.t, "items") {
		c.Var.Data = []byte{1}
	}
	if c.Op == command.LockVariable {
		c.Var.Lock = &secrets.Lock{ID: c.LockID, TTL: 10}
	}
	return c
}

// checkRootKeys: one key is active, unless there was none yet.
func checkRootKeys(t testing.TB, s *store.Snapshot) {
	active, retired := 0, 0
	for k := range s.RootKeys() {
		switch k.State {
		case secrets.Active:
			active++
			require.Zero(t, k.RetiredIndex)
		case secrets.Prepublished:
			require.Zero(t, k.RetiredIndex)
		default:
			retired++
			require.NotZero(t, k.RetiredIndex)
		}
	}
	require.LessOrEqual(t, active, 1)
	require.True(t, active == 1 || retired == 0, "a key is retired by another one")
}

// servers draws what several servers are together, access control, or the keyring.
func (d draw) servers() command.Command {
	switch rapid.IntRange(0, 6).Draw(d.t, "secret") {
	case 6:
		return d.revocation()
	case 5:
		return d.admission()
	case 4:
		return d.variables()
	case 0:
		return d.acl()
	case 1:
		return d.rootKeys()
	}
	if rapid.Bool().Draw(d.t, "init") {
		return &command.InitCluster{ID: d.id("c", 3), Epoch: "e"}
	}
	return &command.SetAutopilot{
		Config: &cluster.Autopilot{MinQuorum: 3, ModifyIndex: uint64(rapid.IntRange(0, 30).Draw(d.t, "autopilot"))},
		CAS:    rapid.Bool().Draw(d.t, "cas"),
	}
}

func (d draw) command(s *store.Snapshot) command.Command {
	switch rapid.IntRange(0, 28).Draw(d.t, "kind") {
	case 0, 1:
		c := &command.RegisterJob{Job: d.job(), Evals: d.evals(), Time: d.time()}
		if d.time()%2 == 0 {
			c.Submission = &drover.JobSubmission{Source: "job", Format: "hcl2", VariableFlags: map[string]string{"a": "b"}}
		}
		return c
	case 2:
		return &command.DeregisterJob{Namespace: "default", ID: d.id("j", 4), Purge: rapid.Bool().Draw(d.t, "purge"), Time: d.time()}
	case 3, 4, 5:
		return d.plan(s)
	case 6, 7:
		return d.updates()
	case 8:
		return node(d.id("n", 3))
	case 9:
		return &command.ClaimRunners{
			Time: d.time(), Claims: []command.RunnerClaim{{AllocID: d.id("a", 12), Claim: drover.Claim{RunnerID: d.id("r", 3)}}},
			Demands: []command.PoolDemand{{Namespace: "default", JobID: d.id("j", 4), Demand: rapid.IntRange(0, 3).Draw(d.t, "demand")}},
		}
	case 10:
		return &command.StopAllocs{IDs: []string{d.id("a", 12)}, Time: d.time(), Evals: d.evals()}
	case 11:
		return &command.Reap{
			Allocs: []string{d.id("a", 12)}, Evals: []string{d.id("e", 6)}, Nodes: []string{d.id("n", 9)},
			Jobs: []drover.NamespacedID{{Namespace: "default", ID: d.id("j", 20)}, {Namespace: "default", ID: d.id("j0/dispatch-", 9)}},
		}
	case 12:
		return &command.TransitionAllocs{Time: d.time(), Transitions: map[string]drover.DesiredTransition{
			d.id("a", 12): {Migrate: new(true)}, d.id("a", 12): {NoShutdownDelay: new(true)},
		}}
	case 20, 21:
		return d.leases(s)
	case 17, 22, 24, 25:
		return d.servers()
	case 26, 27, 28:
		return d.volumes(s)
	case 18:
		return d.dispatch()
	case 19:
		return d.executions()
	case 23:
		return d.restore(s)
	}
	return d.small()
}

// small is a command that changes a row or two.
func (d draw) small() command.Command {
	switch rapid.IntRange(0, 4).Draw(d.t, "small") {
	case 0:
		return &command.RecordScaling{Namespace: "default", JobID: d.id("j", 4), Record: command.ScalingRecord{
			Group: "g", Event: drover.ScalingEvent{Time: d.time(), Message: "m", Meta: map[string]any{"a": "b"}},
		}}
	case 1:
		return &command.SetNodeMeta{NodeID: d.id("n", 3), Meta: map[string]*string{"k": new("v"), "gone": nil}, Time: d.time()}
	case 2:
		return &command.UpdateEvals{Evals: d.evals()}
	case 3:
		return &command.UpdateDeploymentStatus{Update: &drover.DeploymentStatusUpdate{
			DeploymentID: "d0",
			Status:       d.pick("d", "successful", "failed"),
		}}
	}
	return &command.SetDrain{NodeID: d.id("n", 3), Strategy: &drover.DrainStrategy{}, Time: d.time()}
}

// restore goes back to the present state, or to one of another log, or to what is no state.
func (d draw) restore(s *store.Snapshot) command.Command {
	image := snapshot.Of(s)
	if rapid.Bool().Draw(d.t, "of another log") {
		other := New(store.New(), nil)
		other.advance(rapid.Uint64Range(1, 200).Draw(d.t, "index"))
		image = other.Image()
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	require.NoError(d.t, image.Write(zip))
	require.NoError(d.t, zip.Close())
	if rapid.IntRange(0, 3).Draw(d.t, "damaged") == 0 {
		packed.Truncate(packed.Len() / 2)
	}
	return &command.RestoreState{
		ID: "r", Data: packed.Bytes(), Last: true, Epoch: "7",
		Then: command.StopAllocs{IDs: []string{d.id("a", 12)}, Time: d.time(), Evals: d.evals()},
	}
}

// TestSameLogSameState: replaying gives the same hash, restoring gives the same hash, and going on after a restore
// does, too; what is derived equals what a scan finds.
func TestSameLogSameState(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		b := setup(t)
		d := draw{rt}
		var restored *FSM
		for range rapid.IntRange(1, 60).Draw(rt, "entries") {
			_, err := b.try(d.command(b.now()))
			if restored != nil {
				_, again := restored.Apply(b.index, b.log[len(b.log)-1])
				require.Equal(t, fmt.Sprint(err), fmt.Sprint(again))
			}
			if restored == nil || rapid.IntRange(0, 19).Draw(rt, "restore") == 0 {
				restored = restore(t, b.f)
			}
		}
		require.Equal(t, b.f.Hash(), restored.Hash(), "after going on from a snapshot")
		replayed := New(store.New(), nil)
		for i, data := range b.log {
			_, _ = replayed.Apply(uint64(i+1), data)
		}
		require.Equal(t, b.f.Hash(), replayed.Hash(), "after replaying the log")
		checkDerived(t, b.now())
		checkDispatches(t, b.now())
		checkRootKeys(t, b.now())
		checkExecutions(t, b.now())
		checkVolumes(t, b.now())
		checkEvents(t, b.told.events)
	})
}

func restore(t testing.TB, f *FSM) *FSM {
	var image bytes.Buffer
	require.NoError(t, f.Snapshot(&image))
	g := New(store.New(), nil)
	require.NoError(t, g.Restore(bytes.NewReader(image.Bytes())))
	require.Equal(t, f.Hash(), g.Hash(), "after a restore")
	require.Equal(t, f.Store().Index(), g.Store().Index())
	return g
}

func checkDerived(t testing.TB, s *store.Snapshot) {
	used := map[string]drover.Capacity{}
	byJob := map[string]int{}
	for a := range s.Allocations("*", "") {
		if a.HoldsResources() {
			used[a.NodeID] = used[a.NodeID].Add(a.AllocatedResources.Used())
		}
		byJob[a.JobID] += 1
		require.Contains(t, slices.Collect(s.AllocationsByNode(a.NodeID)), a)
	}
	for _, n := range []string{"n0", "n1", "n2"} {
		require.Equal(t, used[n], s.Used(n))
	}
	for _, id := range slices.Sorted(maps.Keys(byJob)) {
		require.Len(t, slices.Collect(s.AllocationsByJob("default", id)), byJob[id])
	}
	for r := range s.JobRows() {
		live, open := 0, 0
		for a := range s.AllocationsByJob(r.Summary.Namespace, r.Summary.JobID) {
			if !a.Terminal() {
				live++
			}
		}
		for e := range s.EvaluationsByJob(r.Summary.Namespace, r.Summary.JobID) {
			if !e.Terminal() {
				open++
			}
		}
		require.Equal(t, []int{live, open, byJob[r.Summary.JobID]}, []int{r.Live, r.OpenEvals, r.Allocs})
	}
}

// checkDispatches: a token has one child at most, and the index finds it.
func checkDispatches(t testing.TB, s *store.Snapshot) {
	children := map[string]*drover.Job{}
	for j := range s.Jobs("*", "j0/") {
		require.Nil(t, children[j.DispatchIdempotencyToken], "two children with one token")
		children[j.DispatchIdempotencyToken] = j
	}
	for _, token := range []string{"a", "a\x00b", "b"} {
		require.Equal(t, children[token], s.DispatchedJob("default", "j0", token))
	}
}

func checkEvents(t testing.TB, events []drover.Events) {
	last := uint64(0)
	for _, e := range events {
		require.Greater(t, e.Index, last)
		last = e.Index
	}
}

func TestRestoreRefusesDamage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := b.do(register(job("j", "batch", 1))).(*drover.Job)
	b.do(plan(j, placed("a", "j"), placed("b", "j")))
	require.Same(t, b.now().Allocation("a").AllocatedResources, b.now().Allocation("b").AllocatedResources)
	var image bytes.Buffer
	require.NoError(t, b.f.Snapshot(&image))
	g := New(store.New(), nil)
	require.NoError(t, g.Restore(bytes.NewReader(image.Bytes())))
	require.Same(t, g.Store().Snapshot().Allocation("a").AllocatedResources, g.Store().Snapshot().Allocation("b").AllocatedResources)
	require.Equal(t, g.Store().Snapshot().Job("default", "j"), g.Store().Snapshot().Allocation("a").Job)
	before := g.Hash()
	for n := 0; n < image.Len(); n += 1 + n%13 {
		require.Error(t, g.Restore(bytes.NewReader(image.Bytes()[:n])), "cut at %d", n)
		damaged := bytes.Clone(image.Bytes())
		damaged[n] ^= 0x10
		require.Error(t, g.Restore(bytes.NewReader(damaged)), "flipped at %d", n)
	}
	require.Equal(t, before, g.Hash(), "a damaged snapshot changes nothing")
}
