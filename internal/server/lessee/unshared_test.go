package lessee_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// lead has another server lead.
func (r *region) lead(s *server) {
	r.mu.Lock()
	r.leader = s
	r.mu.Unlock()
	r.changed.Send()
	synctest.Wait()
}

// TestBeforeRunnersAreLeased: while the cluster writes no leases the leader hands out all runners, and nobody else any. What is warm
// when another one begins to lead is stopped, as the one before may have handed it out, and what is claimed goes on there. Once leases
// are written all have a share, and the leader keeps what was claimed, with what runs in it.
func TestBeforeRunnersAreLeased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRegion(t, "a", "b")
		r.old.Store(true)
		a, b := r.run("a"), r.run("b")
		time.Sleep(2 * time.Second)
		a.put(t)
		spare := r.add("")
		r.add("") // the freshest is handed out first
		synctest.Wait()
		require.True(t, a.Warm("python"))
		require.False(t, b.Warm("python"))
		before := r.ClaimEntries()
		got, err := a.Claim(t.Context(), atOnce)
		require.NoError(t, err)
		require.Equal(t, before+1, r.ClaimEntries(), "the log has it before it is answered")
		_, err = b.Claim(t.Context(), atOnce)
		require.Equal(t, drover.NotLeader, drover.CodeOf(err))
		x, err := a.CreateRequest(t.Context(), got.ID, execution.Request{Spec: execution.Spec{
			Argv: []string{"/bin/sh", "-c", "sleep 1h"}, Detach: -1,
		}})
		require.NoError(t, err)

		r.lead(b)
		time.Sleep(2 * time.Second)
		require.True(t, r.Snapshot().Allocation(spare.ID).ServerTerminal(), "a may have handed it out")
		_, err = b.Runner(t.Context(), got.ID)
		require.NoError(t, err)
		_, err = a.Runner(t.Context(), got.ID)
		require.Equal(t, drover.NotLeader, drover.CodeOf(err))

		r.lead(a)
		time.Sleep(2 * time.Second)
		r.old.Store(false)
		r.changed.Send()
		time.Sleep(5 * time.Second)
		require.Len(t, r.list(), 2)
		_, err = a.Runner(t.Context(), got.ID)
		require.NoError(t, err, "the leader began first")
		found, err := a.Info(t.Context(), x.ID)
		require.NoError(t, err)
		require.True(t, found.Running)
		r.add("b")
		synctest.Wait()
		_, err = b.Claim(t.Context(), atOnce)
		require.NoError(t, err)
		time.Sleep(time.Hour) // it ends
		b.end()
		a.end()
	})
}

// TestWhoBeginsFirstIsAsked: once leases are written another server may begin before the leader's own service of before has ended.
func TestWhoBeginsFirstIsAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRegion(t, "a", "b")
		r.old.Store(true)
		a, b := r.run("a"), r.run("b")
		time.Sleep(2 * time.Second)
		a.put(t)
		starting := r.add("").ID
		r.Update(starting, func(x *drover.Allocation) { x.ClientStatus = drover.AllocClientPending })
		synctest.Wait()
		leases, giveBack, err := a.Withhold(t.Context(), []string{starting})
		require.NoError(t, err)
		require.Equal(t, []uint64{0}, leases)
		giveBack(true)
		_, _, err = b.BeginIncarnation(t.Context(), "b")
		require.NoError(t, err)
		_, _, err = a.Withhold(t.Context(), []string{starting})
		require.Equal(t, drover.Unavailable, drover.CodeOf(err), "b may be leased it, and has no service yet")
		b.end()
		a.end()
	})
}

// TestNobodyWaitsForAVersionThatRises: a cluster that has just begun writes leases within a moment, and has no service before.
func TestNobodyWaitsForAVersionThatRises(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRegion(t, "a", "b")
		r.old.Store(true)
		a, b := r.run("a"), r.run("b")
		terms := a.Terms()
		time.Sleep(100 * time.Millisecond)
		r.old.Store(false)
		r.changed.Send()
		synctest.Wait()
		require.Len(t, r.list(), 2)
		require.Equal(t, terms+1, a.Terms(), "one service began")
		b.end()
		a.end()
	})
}
