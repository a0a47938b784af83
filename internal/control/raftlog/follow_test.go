package raftlog

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// What follows leadership runs on the leader only, and moves on with it.
func TestFollowersFollowTheLeader(t *testing.T) {
	t.Parallel()
	logs := make([]*Log, 3)
	began, ended := make(chan int, 9), make(chan int, 9)
	for i := range logs {
		l, err := Open(Config{ID: fmt.Sprintf("s%d", i), Network: network(t), Join: i > 0, DataDir: t.TempDir()}, deps())
		require.NoError(t, err)
		logs[i] = l
		t.Cleanup(func() { require.NoError(t, l.Close()) })
	}
	require.NoError(t, logs[0].WaitLeader(t.Context()))
	for _, l := range logs[1:] {
		require.NoError(t, logs[0].AddVoter(t.Context(), l.cfg.ID, l.Address()))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i, l := range logs {
		all.Go(func() { // ends with ctx
			l.Follow(ctx, func(termCtx context.Context) {
				began <- i
				<-termCtx.Done()
				ended <- i
			})
		})
	}
	require.Equal(t, 0, <-began)
	require.NoError(t, logs[0].raft.LeadershipTransferToServer("s2", logs[2].address).Error())
	require.Equal(t, 0, <-ended)
	require.Equal(t, 2, <-began)
	require.False(t, logs[0].IsLeader())
	cancel()
	all.Wait()
	require.Equal(t, 2, <-ended)
	require.Empty(t, began)
}
