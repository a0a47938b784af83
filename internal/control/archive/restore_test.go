package archive

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/store"
)

// pooled is a state with a warm runner, and with one that was handed out.
func pooled(t *testing.T) *fsm.FSM {
	f := machine(t)
	j := job("env")
	j.TaskGroups[0].Pool = &drover.WarmPool{Size: 2}
	apply(t, f, &command.BeginIncarnation{Server: "s1"}, &command.RegisterJob{Job: j})
	j = f.Store().Snapshot().Job("default", "env")
	var placed []*drover.Allocation
	for _, name := range []string{"warm", "claimed"} { // the second is handed out below
		placed = append(placed, &drover.Allocation{
			ID: name, Namespace: "default", JobID: "env", Job: j, TaskGroup: "g", NodeID: "n1", EvalID: "e",
			DesiredStatus: drover.AllocDesiredRun, ClientStatus: drover.AllocClientRunning,
		})
	}
	apply(t, f, &command.ApplyPlans{Plans: []command.PlanCommit{{EvalID: "e", Job: j, Placed: placed}}},
		&command.ClaimRunners{Claims: []command.RunnerClaim{{AllocID: "claimed", Claim: drover.Claim{RunnerID: "r"}}}})
	return f
}

func TestTheStateGoesBack(t *testing.T) {
	t.Parallel()
	f := pooled(t)
	a, before := archives(t, f), f.Store().Snapshot()
	data := saved(t, f)
	apply(t, f, &command.RegisterJob{Job: job("later")}, &command.DeregisterJob{Namespace: "default", ID: "web", Purge: true},
		&command.ClaimRunners{Claims: []command.RunnerClaim{{AllocID: "warm", Claim: drover.Claim{RunnerID: "since"}}}})
	since := f.Store().Snapshot()
	changed := f.Store().Watch("jobs", "default/web")

	index, err := a.Restore(t.Context(), bytes.NewReader(data), "")
	require.NoError(t, err)
	s := f.Store().Snapshot()
	require.Equal(t, s.Index(), index)
	require.Greater(t, index, since.Index(), "no index is used twice")
	require.Nil(t, s.Job("default", "later"))
	require.NotNil(t, s.Job("default", "web"))
	<-changed
	for table := range since.TableIndexes() {
		require.Equal(t, index, s.TableIndex(table), "who waits for a change of %s hears of this one", table)
	}
	require.Equal(t, "the cluster", s.Cluster().ID)
	require.Greater(t, s.Cluster().Epoch, before.Cluster().Epoch)

	require.Equal(t, drover.AllocDesiredStop, s.Allocation("warm").DesiredStatus, "it was handed out after the archive was saved")
	require.Nil(t, s.Allocation("warm").Claim)
	require.Equal(t, drover.AllocDesiredRun, s.Allocation("claimed").DesiredStatus)
	require.Equal(t, "r", s.Allocation("claimed").Claim.RunnerID)
	require.Empty(t, slices.Collect(s.Lessees()), "no service goes on under a lease of then")
	evaluated := map[string]bool{}
	for e := range s.Evaluations("*", "") {
		evaluated[e.JobID] = e.Status == drover.EvalPending
	}
	require.Equal(t, map[string]bool{"web": true, "db": true, "env": true}, evaluated)

	apply(t, f, &command.RegisterJob{Job: job("after")})
	require.Equal(t, index+1, f.Store().Snapshot().Job("default", "after").ModifyIndex)
}

// An archive of a log that was longer is restored into an empty one: the indexes go on behind it, also after a snapshot.
func TestAnEmptyServerGoesOnBehindTheArchive(t *testing.T) {
	t.Parallel()
	old := machine(t)
	for i := range 50 {
		apply(t, old, &command.RegisterJob{Job: job(fmt.Sprint("job", i))})
	}
	f := fsm.New(store.New(), nil)
	index, err := archives(t, f).Restore(t.Context(), bytes.NewReader(saved(t, old)), "")
	require.NoError(t, err)
	require.Greater(t, index, old.Store().Index()+1000, "nodes have seen more of it than the archive has")
	s := f.Store().Snapshot()
	require.Equal(t, index, s.Index())
	require.NotNil(t, s.Cluster())
	require.NotEqual(t, "the cluster", s.Cluster().ID, "there may be two of them now")
	require.Greater(t, s.Cluster().Epoch, old.Store().Snapshot().Cluster().Epoch)

	entry, err := command.Encode(&command.RegisterJob{Job: job("after")})
	require.NoError(t, err)
	var image bytes.Buffer
	require.NoError(t, f.Snapshot(&image))
	again := fsm.New(store.New(), nil)
	require.NoError(t, again.Restore(&image))
	for _, f := range []*fsm.FSM{f, again} {
		_, err = f.Apply(2, entry) // the archive was the log's first entry
		require.NoError(t, err)
		require.Equal(t, index+1, f.Store().Index())
	}
	require.Equal(t, f.Hash(), again.Hash())
}

func TestARefusedArchiveChangesNothing(t *testing.T) {
	t.Parallel()
	f := machine(t)
	good := saved(t, f)
	apply(t, f, &command.RegisterJob{Job: job("later")})
	before := f.Hash()
	a := archives(t, f)
	for _, c := range []struct {
		data []byte
		said string
		code drover.Code
		why  string
	}{
		{good[:len(good)-1], "", drover.Invalid, "torn"},
		{append(bytes.Clone(good), good...), "", drover.Invalid, "behind its end"},
		{good, "sha-256=AAAA", drover.Invalid, "damaged on its way"},
		{remade(t, cluster.Archive{Index: 5, Program: "1", Region: "mars"}, stateOf(t, machine(t))), "", drover.Conflict, "region \"mars\""},
	} {
		_, err := a.Restore(t.Context(), bytes.NewReader(c.data), c.said)
		require.ErrorContains(t, err, c.why)
		require.Equal(t, c.code, drover.CodeOf(err))
	}
	a.deps.Log.(*loneLog).refuse = drover.Errorf(drover.NotLeader, "no cluster leader")
	_, err := a.Restore(t.Context(), bytes.NewReader(good), "")
	require.Equal(t, drover.NotLeader, drover.CodeOf(err))
	a.deps.Log.(*loneLog).refuse = nil
	_, err = a.Restore(t.Context(), &failing{good}, "")
	require.ErrorContains(t, err, "went away")
	require.Equal(t, before, f.Hash())

	a.restoring.Lock()
	_, err = a.Restore(t.Context(), bytes.NewReader(good), "")
	require.Equal(t, drover.Conflict, drover.CodeOf(err))
	a.restoring.Unlock()
	_, err = a.Restore(t.Context(), bytes.NewReader(good), "")
	require.NoError(t, err)
}

type failing struct{ data []byte }

func (f *failing) Read(p []byte) (int, error) {
	n := copy(p, f.data[:len(f.data)/2])
	return n, errors.New("who sends it went away")
}

func stateOf(t *testing.T, f *fsm.FSM) []byte {
	var b bytes.Buffer
	require.NoError(t, f.Snapshot(&b))
	return b.Bytes()
}

// A snapshot that is larger than an entry comes in parts; another term of office in between ends the restore.
func TestPartsBelongTogether(t *testing.T) {
	t.Parallel()
	f := machine(t)
	noise := make([]byte, 3*partSize)
	_, err := rand.Read(noise)
	require.NoError(t, err)
	big := job("big")
	big.Meta = map[string]string{"noise": base64.StdEncoding.EncodeToString(noise)}
	apply(t, f, &command.RegisterJob{Job: big})
	data := saved(t, f)
	apply(t, f, &command.RegisterJob{Job: job("later")})
	log := &recording{loneLog: &loneLog{FSM: f}}
	a := archives(t, f)
	a.deps.Log = log
	_, err = a.Restore(t.Context(), bytes.NewReader(data), "")
	require.NoError(t, err)
	require.Greater(t, len(log.parts), 2)
	require.NotNil(t, f.Store().Snapshot().Job("default", "big"))
	require.Nil(t, f.Store().Snapshot().Job("default", "later"))

	apply(t, f, &command.RegisterJob{Job: job("later")})
	before := f.Store().Snapshot()
	for _, between := range []command.Command{&command.Barrier{}, &command.RestoreState{ID: "another"}} {
		apply(t, f, log.parts[0])
		require.True(t, f.Restoring())
		apply(t, f, between)
		for _, p := range log.parts[1:] {
			entry, err := command.Encode(p)
			require.NoError(t, err)
			_, err = f.Apply(f.Store().Index()+1, entry)
			require.Equal(t, drover.Conflict, drover.CodeOf(err))
		}
	}
	apply(t, f, log.parts[0])
	for range 4096 {
		apply(t, f, &command.UpdateEvals{})
	}
	require.True(t, f.Restoring())
	apply(t, f, &command.UpdateEvals{})
	require.False(t, f.Restoring(), "who sent the parts says nothing any more")

	log.full = true
	_, err = a.Restore(t.Context(), bytes.NewReader(data), "")
	require.Equal(t, drover.Exhausted, drover.CodeOf(err))
	require.False(t, f.Restoring(), "who gives up says so")
	require.Same(t, before.Job("default", "later"), f.Store().Snapshot().Job("default", "later"))
	require.Equal(t, before.Cluster(), f.Store().Snapshot().Cluster())
}

// recording keeps the parts.
type recording struct {
	*loneLog
	parts []command.Command
	full  bool // after the first part
}

func (r *recording) Propose(ctx context.Context, c command.Command) (uint64, any, error) {
	if part, ok := c.(*command.RestoreState); ok && r.full && part.Part > 0 {
		return 0, nil, drover.Errorf(drover.Exhausted, "no space left under the raft log")
	}
	r.parts = append(r.parts, c)
	return r.loneLog.Propose(ctx, c)
}
