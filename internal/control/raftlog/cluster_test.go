package raftlog

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/fsm"
)

func TestThreeServers(t *testing.T) {
	t.Parallel()
	logs, fsms := make([]*Log, 3), make([]*fsm.FSM, 3)
	for i := range logs {
		d := deps()
		l, err := Open(Config{
			ID: fmt.Sprintf("s%d", i), Network: network(t), Join: i > 0, DataDir: t.TempDir(),
		}, d)
		require.NoError(t, err)
		logs[i], fsms[i] = l, d.FSM
		t.Cleanup(func() { require.NoError(t, l.Close()) })
	}
	require.NoError(t, logs[0].WaitLeader(t.Context()))
	for _, l := range logs[1:] {
		require.NoError(t, logs[0].AddVoter(t.Context(), l.cfg.ID, l.Address()))
	}
	peers, err := logs[0].Peers()
	require.NoError(t, err)
	require.Len(t, peers, 3)
	var last uint64
	for i := range 50 {
		last, _, err = logs[0].Propose(t.Context(), register(fmt.Sprint(i)))
		require.NoError(t, err)
	}
	_, _, err = logs[1].Propose(t.Context(), register("x"))
	require.Equal(t, drover.NotLeader, drover.CodeOf(err))
	awaitIndex(t, fsms[1:], last)

	require.NoError(t, logs[0].Close(), "the leader goes away")
	ctx, cancel := context.WithCancel(t.Context())
	led := make(chan int, 2)
	for i := range logs[1:] {
		go func() { // ends with ctx
			if logs[i+1].WaitLeader(ctx) == nil {
				led <- i + 1
			}
		}()
	}
	next := <-led
	cancel()
	require.NoError(t, logs[next].WaitLeader(t.Context()))
	last, _, err = logs[next].Propose(t.Context(), register("after"))
	require.NoError(t, err)
	awaitIndex(t, fsms[1:], last)
	require.Equal(t, fsms[1].Hash(), fsms[2].Hash())
	require.NotNil(t, fsms[1].Store().Snapshot().Job("default", "49"))
}

func awaitIndex(t *testing.T, fsms []*fsm.FSM, index uint64) {
	for _, f := range fsms {
		for {
			changed := f.Store().WatchAny()
			if f.Store().Index() >= index {
				break
			}
			select {
			case <-changed:
			case <-t.Context().Done():
				t.Fatal("never came")
			}
		}
	}
}
