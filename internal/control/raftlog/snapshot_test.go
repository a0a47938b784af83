package raftlog

import (
	"fmt"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/control/fsm"
)

// A server that was away for longer than entries are kept is sent a snapshot. The entries that it had before stayed in its log, those after
// the snapshot came behind them, and its next start found that some were missing in between.
func TestAServerThatWasSentASnapshotStartsAgain(t *testing.T) {
	t.Parallel()
	logs, fsms, cfgs := make([]*Log, 3), make([]*fsm.FSM, 3), make([]Config, 3)
	open := func(i int) {
		d := deps()
		l, err := Open(cfgs[i], d)
		require.NoError(t, err)
		logs[i], fsms[i] = l, d.FSM
	}
	for i := range logs {
		cfgs[i] = Config{ID: fmt.Sprintf("s%d", i), Network: network(t), Join: i > 0, DataDir: t.TempDir(), TrailingLogs: 8}
		open(i)
	}
	t.Cleanup(func() {
		for _, l := range logs {
			require.NoError(t, l.Close())
		}
	})
	require.NoError(t, logs[0].WaitLeader(t.Context()))
	for _, l := range logs[1:] {
		require.NoError(t, logs[0].AddVoter(t.Context(), l.cfg.ID, l.Address()))
	}
	propose := func(name string) (last uint64) {
		for i := range 40 {
			var err error
			last, _, err = logs[0].Propose(t.Context(), register(fmt.Sprint(name, i)))
			require.NoError(t, err)
		}
		return last
	}
	awaitIndex(t, fsms[1:], propose("before"))
	require.NoError(t, logs[2].Close())
	propose("away")
	require.NoError(t, logs[0].raft.Snapshot().Error())
	cfgs[2].Network = networkAt(t, logs[2].Address())
	open(2)
	awaitIndex(t, fsms[2:], propose("after"))
	require.NotEqual(t, "0", logs[2].raft.Stats()["last_snapshot_index"])
	require.NoError(t, logs[2].Close())
	cfgs[2].Network = networkAt(t, logs[2].Address())
	open(2)
	awaitIndex(t, fsms[2:], propose("again"))
	require.Equal(t, fsms[0].Hash(), fsms[2].Hash())
}

// The process may end between the snapshot and the removal of what it stands for.
func TestALogThatLeapsForgetsWhatWasBefore(t *testing.T) {
	t.Parallel()
	s, err := openStores(&Config{DataDir: t.TempDir(), Retain: 2}, newHealth(), deps().Clock, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.close()) })
	entry := func(i uint64) *raft.Log {
		return &raft.Log{Index: i, Term: 1, Type: raft.LogCommand, Data: []byte{byte(i)}}
	}
	require.NoError(t, s.log.StoreLogs([]*raft.Log{entry(1), entry(2), entry(3)}))
	require.NoError(t, s.log.StoreLogs([]*raft.Log{entry(9), entry(10)}))
	first, err := s.log.FirstIndex()
	require.NoError(t, err)
	require.Equal(t, uint64(9), first)
	_, err = verify(s.log, 0)
	require.NoError(t, err)
	require.NoError(t, s.log.StoreLog(entry(11)))
	_, err = verify(s.log, 0)
	require.NoError(t, err)
}

// A program of before left such logs behind. What is missing behind the newest snapshot is still refused.
func TestWhatASnapshotStandsForMayBeMissing(t *testing.T) {
	t.Parallel()
	s := raft.NewInmemStore()
	for _, i := range []uint64{4, 5, 9, 10} {
		require.NoError(t, s.StoreLog(&raft.Log{Index: i, Term: 1, Type: raft.LogNoop}))
	}
	for snapshot, whole := range map[uint64]bool{0: false, 5: false, 7: false, 8: true, 10: true} {
		_, err := verify(s, snapshot)
		require.Equal(t, whole, err == nil, "snapshot %d: %v", snapshot, err)
	}
}
