package leader

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/id"
)

func TestALateWatcherForgives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHeartbeats(Config{}.withDefaults(), clock.Wall{})
		h.beat("a")
		time.Sleep(5 * time.Second)
		h.beat("b")
		time.Sleep(20 * time.Second)
		require.False(t, h.forgive(time.Second), "that is not worth a word")
		require.True(t, h.forgive(5*time.Second))
		ids, wait := h.overdue()
		require.Empty(t, ids, "we slept ourselves")
		require.Equal(t, 10*time.Second, wait)
		h.beat("b")
		time.Sleep(11 * time.Second)
		require.False(t, h.forgive(time.Second))
		ids, _ = h.overdue()
		require.Equal(t, []string{"a"}, ids, "being a little late forgives no more than that")
	})
}

// lateClock's timers are late, as those of a machine with too much to do.
type lateClock struct {
	clock.Wall
	late *atomic.Int64 // nanoseconds
}

func (c lateClock) NewTimer(d time.Duration) clock.Timer {
	return c.Wall.NewTimer(d + time.Duration(c.late.Load()))
}

// slowLog takes its time for each entry, and has a store apply it.
type slowLog struct {
	machine *fsm.FSM
	index   uint64
	takes   atomic.Int64 // nanoseconds
}

func (l *slowLog) Propose(_ context.Context, c command.Command) (uint64, any, error) {
	time.Sleep(time.Duration(l.takes.Load()))
	data, err := command.Encode(c)
	if err != nil {
		return 0, nil, err
	}
	l.index++
	_, err = l.machine.Apply(l.index, data)
	return l.index, nil, err
}

// watching is a leader that only watches heartbeats, of these nodes.
func watching(t *testing.T, late time.Duration, nodes ...string) (*Leader, *slowLog, *atomic.Int64) {
	t.Helper()
	st := store.New()
	log := &slowLog{machine: fsm.New(st, nil)}
	for _, id := range nodes {
		node := &drover.Node{ID: id, SecretID: "s", Status: drover.NodeStatusReady}
		_, _, err := log.Propose(t.Context(), &command.RegisterNode{Node: node})
		require.NoError(t, err)
	}
	c := lateClock{late: new(atomic.Int64)}
	c.late.Store(int64(late))
	l := New(Config{}, Deps{Store: st, Clock: c, IDs: id.NewSeeded(1), Logger: slog.New(slog.DiscardHandler)})
	l.heartbeats.restore(st.Snapshot())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { // ends with ctx
		defer close(done)
		l.watchHeartbeats(ctx, log)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return l, log, c.late
}

func (l *Leader) lost(nodeID string) bool {
	return l.deps.Store.Snapshot().Node(nodeID).Status == drover.NodeStatusDown
}

// A server that is late all the time by less than what is worth a word hears of nodes late, too. It once counted that against them.
func TestTimeInWhichNobodyWatchesDoesNotCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, _, _ := watching(t, time.Second, "n") // it looks each 2.25 s instead of each 1.25
		time.Sleep(30 * time.Second)
		require.False(t, l.lost("n"), "it was watched for 17 of these")
		time.Sleep(10 * time.Second)
		require.True(t, l.lost("n"))
	})
}

// A server was stopped, and went on just before a node was due. The watch was on time then, and what the node had said lay unread.
func TestAStopBeforeTheDeadlineIsNoticed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, _, late := watching(t, 0, "n")
		time.Sleep(3 * time.Second)
		late.Store(int64(14 * time.Second)) // a stop until just before the node would have been given up
		time.Sleep(2 * time.Second)
		late.Store(0)
		time.Sleep(15 * time.Second)
		require.False(t, l.lost("n"))
		l.Heartbeat("n")
		time.Sleep(19 * time.Second)
		require.False(t, l.lost("n"))
	})
}

// However late a server is again and again, it finds out that a node is silent. It once gave the grace anew each time.
func TestASilentNodeIsFoundByABusyServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, _, _ := watching(t, 5*time.Second, "n")
		time.Sleep(3 * time.Minute)
		require.True(t, l.lost("n"))
	})
}

// While the log takes half a minute to give one node up, what others say may wait behind it. That is not held against them.
func TestNodesAreNotLostToASlowLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, log, _ := watching(t, 0, "gone", "n")
		time.Sleep(19 * time.Second)
		l.Heartbeat("n")
		log.takes.Store(int64(30 * time.Second))
		time.Sleep(33 * time.Second)
		require.True(t, l.lost("gone"))
		l.Heartbeat("n")
		time.Sleep(8 * time.Second)
		require.False(t, l.lost("n"), "it said something as soon as it could")
	})
}

// A new leader gives nodes the time of a failover to find it, and a node that did the usual one.
func TestANewLeaderWaitsForNodes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := store.New()
		machine := fsm.New(st, nil)
		for i, id := range []string{"a", "b"} {
			data, err := command.Encode(&command.RegisterNode{Node: &drover.Node{ID: id, SecretID: "s", Status: drover.NodeStatusReady}})
			require.NoError(t, err)
			_, err = machine.Apply(uint64(i+1), data)
			require.NoError(t, err)
		}
		h := newHeartbeats(Config{FailoverTTL: 5 * time.Minute}.withDefaults(), clock.Wall{})
		h.restore(st.Snapshot())
		h.beat("b")
		time.Sleep(21 * time.Second)
		ids, wait := h.overdue()
		require.Equal(t, []string{"b"}, ids, "it was heard of, and then not for 10 s and the grace of 10 s")
		require.Equal(t, 5*time.Minute-11*time.Second, wait)
		time.Sleep(wait)
		ids, _ = h.overdue()
		require.Equal(t, []string{"a"}, ids)
	})
}
