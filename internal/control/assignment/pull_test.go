package assignment

import (
	"bytes"
	"compress/gzip"
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/id"
)

// one returns a controller of a server that is one of several, over the bundle's state.
func (b *bundle) one(leads bool, touch func() error) *Controller {
	return New(Deps{
		Log: b.log, Store: b.store, Leader: fakeLeader{leads}, Clock: clock.Wall{}, IDs: id.Random{}, Logger: slog.New(slog.DiscardHandler),
		Several: true, Touch: touch,
	})
}

func inTouch() error { return nil }

// A server that follows tells nodes what to run, but never from older state than they have seen: it waits until it has that, and
// says at last that it cannot. It does not decide who is heard of.
func TestAFollowerIsNeverOlderThanTheNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		ctx := t.Context()
		_, _, err := b.log.Propose(ctx, &command.InitCluster{ID: "c", Epoch: cluster.NextEpoch("")})
		require.NoError(t, err)
		b.place(t, "service", "n1", "a1")
		follower := b.one(false, inTouch)
		a, err := follower.Pull(ctx, "n1", exchange.Seen{}, time.Minute)
		require.NoError(t, err)
		require.Len(t, a.Allocs, 1)
		require.Equal(t, b.store.Index(), a.State)
		seen := exchange.Seen{Index: a.Index, State: a.State, Age: a.Age}

		ahead := seen
		ahead.State += 2
		began := time.Now()
		_, err = follower.Pull(ctx, "n1", ahead, time.Minute)
		require.Equal(t, drover.Unavailable, drover.CodeOf(err), "%v", err)
		require.Equal(t, catchUp, time.Since(began))
		got := make(chan exchange.Assignment, 1)
		go func() { // ends when the state is new enough, and has news
			a, _ := follower.Pull(ctx, "n1", ahead, time.Minute)
			got <- a
		}()
		synctest.Wait()
		b.place(t, "batch", "n1", "a2") // two entries
		require.Len(t, (<-got).Allocs, 2)

		restored := seen
		restored.Age = (&cluster.State{ID: "c"}).Age()
		a, err = follower.Pull(ctx, "n1", restored, time.Minute)
		require.NoError(t, err)
		require.NotEqual(t, restored.Age, a.Age, "after a restore the index may be lower")
		later := exchange.Seen{Index: 1, State: 1, Age: (&cluster.State{ID: "c", Epoch: cluster.NextEpoch(cluster.NextEpoch(""))}).Age()}
		_, err = follower.Pull(ctx, "n1", later, time.Minute)
		require.Equal(t, drover.Unavailable, drover.CodeOf(err), "it has not heard of the restore: %v", err)

		_, err = follower.Register(ctx, &drover.Node{ID: "n1", SecretID: "s"})
		require.Equal(t, drover.NotLeader, drover.CodeOf(err), "a registration without a change is a heartbeat, which is the leader's: %v", err)
		_, err = follower.Heartbeat(ctx, "n1")
		require.Equal(t, drover.NotLeader, drover.CodeOf(err))
		leader := b.one(true, inTouch)
		reg, err := leader.Register(ctx, &drover.Node{ID: "n1", SecretID: "s"})
		require.NoError(t, err)
		require.Equal(t, seen.Age, reg.Age)
	})
}

// A server that is cut off from the leader lets the questions go that it holds: other servers have the news.
func TestAServerThatIsCutOffHoldsNoQuestion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		_, _, err := b.log.Propose(t.Context(), &command.InitCluster{ID: "c", Epoch: cluster.NextEpoch("")})
		require.NoError(t, err)
		cut := time.Now().Add(time.Minute)
		follower := b.one(false, func() error {
			if time.Now().Before(cut) {
				return nil
			}
			return drover.Errorf(drover.Unavailable, "cut off")
		})
		a, err := follower.Pull(t.Context(), "n1", exchange.Seen{}, time.Hour)
		require.NoError(t, err)
		began := time.Now()
		seen := exchange.Seen{Index: a.Index, State: a.State, Age: a.Age}
		_, err = follower.Pull(t.Context(), "n1", seen, time.Hour)
		require.Equal(t, drover.Unavailable, drover.CodeOf(err), "%v", err)
		require.LessOrEqual(t, time.Since(began), time.Minute+touchEvery)
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		cut = time.Now().Add(time.Hour)
		_, err = follower.Pull(canceled, "n1", seen, time.Hour)
		require.Equal(t, drover.Canceled, drover.CodeOf(err))
	})
}

// However many nodes wait, one looks whether the server would hear of news; when nobody waits, nobody looks.
func TestOneLooksForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		_, _, err := b.log.Propose(t.Context(), &command.InitCluster{ID: "c", Epoch: cluster.NextEpoch("")})
		require.NoError(t, err)
		var looked atomic.Int32
		follower := b.one(false, func() error { looked.Add(1); return nil })
		a, err := follower.Pull(t.Context(), "n1", exchange.Seen{}, time.Hour)
		require.NoError(t, err)
		const nodes = 100
		ended := make(chan error, nodes)
		looked.Store(0)
		for range nodes {
			go func() { // ends after the minute
				_, err := follower.Pull(t.Context(), "n1", exchange.Seen{Index: a.Index, State: a.State, Age: a.Age}, time.Minute)
				ended <- err
			}()
		}
		for range nodes {
			require.NoError(t, <-ended)
		}
		require.LessOrEqual(t, int(looked.Load()), 2*nodes+int(time.Minute/touchEvery), "each once or twice, and one from time to time")
		time.Sleep(touchEvery) // of the bubble
		synctest.Wait()
		looked.Store(0)
		time.Sleep(time.Minute) // of the bubble
		require.Zero(t, looked.Load())
	})
}

// Nobody knows more than a lone server, whose term may begin a little later; and a cluster that has not begun has no leader.
func TestWhoLeads(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.place(t, "service", "n1", "a1")
	lone := New(Deps{
		Log: b.log, Store: b.store, Leader: fakeLeader{}, Clock: clock.Wall{}, IDs: id.Random{}, Logger: slog.New(slog.DiscardHandler),
	})
	a, err := lone.Pull(t.Context(), "n1", exchange.Seen{}, time.Minute)
	require.NoError(t, err)
	require.Len(t, a.Allocs, 1)
	_, err = b.one(true, inTouch).Register(t.Context(), &drover.Node{ID: "n1", SecretID: "s"})
	require.Equal(t, drover.NotLeader, drover.CodeOf(err))
}

// A state that is not older than what the node has seen is at least as far in the history, over restores too.
func TestOlder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type moment struct {
			age   string
			index uint64
		}
		epoch := cluster.NextEpoch("")
		history := []moment{{"", 1}}
		for range rapid.IntRange(1, 20).Draw(t, "entries") {
			index := history[len(history)-1].index + 1
			if rapid.IntRange(0, 4).Draw(t, "restore") == 0 {
				epoch, index = cluster.NextEpoch(epoch), history[rapid.IntRange(0, len(history)-1).Draw(t, "back")].index
			}
			history = append(history, moment{(&cluster.State{ID: "c", Epoch: epoch}).Age(), index})
		}
		here, there := rapid.IntRange(0, len(history)-1).Draw(t, "here"), rapid.IntRange(0, len(history)-1).Draw(t, "seen")
		seen := exchange.Seen{State: history[there].index, Age: history[there].age}
		require.Equal(t, here < there, Older(history[here].age, history[here].index, seen))
	})
}

// After a restore the list of a lone server, which has no age, is older than what its node has; the node is told it at once.
func TestANodeIsToldOfARestore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.place(t, "service", "n1", "a1")
	seen := exchange.Seen{Index: b.store.Index(), State: b.store.Index()}
	var snapshot bytes.Buffer
	zip := gzip.NewWriter(&snapshot)
	require.NoError(t, b.log.fsm.Snapshot(zip))
	require.NoError(t, zip.Close())
	index, _, err := b.log.Propose(t.Context(), &command.RestoreState{ID: "r", Data: snapshot.Bytes(), Last: true})
	require.NoError(t, err)
	a, err := b.Pull(t.Context(), "n1", seen, time.Minute)
	require.NoError(t, err)
	require.Equal(t, index, a.Index)
	require.Len(t, a.Allocs, 1)
}
