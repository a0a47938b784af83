package lessee_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/control/leases"
)

// A server's process was killed. Its users waited six seconds, until its incarnation ended; what was recorded as claimed is taken
// over as soon as the leader sees that nobody listens there. What it may have handed out besides waits: it may come back and tell.
func TestAServerWhoseProcessIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRegion(t, "a", "b")
		a, b := r.run("a"), r.run("b")
		a.put(t)
		unused := r.add("b")
		r.add("b")
		synctest.Wait()
		got, x := b.occupy(t)
		has, err := a.AnswerHas(t.Context(), x.ID, 0)
		require.NoError(t, err)
		require.False(t, has)

		b.cut.Store(true) // so that it gives nothing back
		b.end()
		time.Sleep(leases.Quiet + leases.Renew)
		require.Equal(t, uint64(2), r.Snapshot().Allocation(got.AllocID).Lease, "it may live, and only be cut off")
		b.gone.Store(true)
		time.Sleep(time.Second)
		require.Len(t, r.list(), 2)
		require.False(t, r.Snapshot().Allocation(unused.ID).Terminal())
		has, err = a.AnswerHas(t.Context(), x.ID, 0)
		require.NoError(t, err)
		require.True(t, has, "it goes on at the leader")
		_, err = a.Runner(t.Context(), got.ID)
		require.NoError(t, err)

		b.gone.Store(false)
		b.cut.Store(false)
		b = r.run("b")
		require.True(t, r.Snapshot().Allocation(unused.ID).Terminal(), "b may have handed it out before it was killed")
		_, err = b.Info(t.Context(), x.ID)
		require.Equal(t, drover.NotFound, drover.CodeOf(err), "it is another's now")
		found, err := a.Info(t.Context(), x.ID)
		require.NoError(t, err)
		require.True(t, found.Running)
		r.fail(got)
		b.end()
		a.end()
	})
}

// Who asks whether a server has an execution has seen that the server was given its runner: it must not hear no because the
// server has not looked yet.
func TestWhatWasJustTakenOverIsLookedForFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRegion(t, "a", "b")
		a, b := r.run("a"), r.run("b")
		a.put(t)
		r.add("b")
		synctest.Wait()
		got, x := b.occupy(t)
		require.NoError(t, a.MoveClaimed(t.Context(), 2, 1))
		has, err := a.AnswerHas(t.Context(), x.ID, 0)
		require.NoError(t, err)
		require.True(t, has)
		r.fail(got)
		b.end()
		a.end()
	})
}

// A server was cut off while it had an execution, which another took over. A request that another server had sent on waited there for the
// next service, and that one, which had begun just now, said that there is no such execution.
func TestAServiceThatBeganJustNowIsNotSure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRegion(t, "a", "b")
		a, b := r.run("a"), r.run("b")
		a.put(t)
		r.add("b")
		synctest.Wait()
		got, x := b.occupy(t)
		b.cut.Store(true)
		time.Sleep(leases.Ends + leases.Renew)
		require.Len(t, r.list(), 1)
		asked := make(chan error, 2)
		go func() { _, err := b.Info(t.Context(), x.ID); asked <- err }() // ends with the answer
		go func() { _, err := b.Attach(t.Context(), x.ID, execution.Offsets{}); asked <- err }()
		synctest.Wait()
		b.cut.Store(false)
		for range 2 {
			err := <-asked
			require.Equal(t, drover.NotLeader, drover.CodeOf(err), "%v", err)
		}
		require.Len(t, r.list(), 2)
		_, err := b.Info(t.Context(), x.ID)
		require.Equal(t, drover.NotFound, drover.CodeOf(err), "whoever asks now has asked all")
		found, err := a.Info(t.Context(), x.ID)
		require.NoError(t, err)
		require.True(t, found.Running)
		r.fail(got)
		b.end()
		a.end()
	})
}

// Who asks a server that stops is told at once that another is the one to ask.
func TestAServerThatStopsAnswersAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRegion(t, "a")
		a := r.run("a")
		a.end()
		from := time.Now()
		_, err := a.Runner(t.Context(), "r")
		require.Equal(t, drover.NotLeader, drover.CodeOf(err))
		require.Zero(t, time.Since(from))
	})
}
