package leader

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/store"
)

func TestALateWatcherForgives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHeartbeats(Config{}.withDefaults(), clock.Wall{})
		h.beat("a")
		time.Sleep(5 * time.Second)
		h.beat("b")
		time.Sleep(20 * time.Second)
		h.forgive(time.Second)
		h.forgive(5 * time.Second)
		ids, wait := h.overdue()
		require.Empty(t, ids, "we slept ourselves")
		require.Equal(t, 10*time.Second, wait)
		h.beat("b")
		time.Sleep(10 * time.Second)
		h.forgive(time.Second)
		ids, _ = h.overdue()
		require.Equal(t, []string{"a"}, ids, "being a little late forgives nothing")
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
