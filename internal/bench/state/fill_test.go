package state_test

import (
	"io"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/bench/state"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/raftlog"
	"github.com/drover-project/drover/internal/control/store"
)

// TestWhatIsFilledCanBeStartedOn: the log and the snapshot hold the nodes and the allocations, which run within the nodes'
// room.
func TestWhatIsFilledCanBeStartedOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	filled, snapshot, err := state.Fill(t.Context(), dir, 3, 1100)
	require.NoError(t, err)
	require.Positive(t, filled)
	require.Positive(t, snapshot)
	found, err := filepath.Glob(filepath.Join(dir, "server", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, found)

	s := store.New()
	log, err := raftlog.Open(raftlog.Config{DataDir: filepath.Join(dir, "server")}, raftlog.Deps{
		FSM: fsm.New(s, nil), Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Clock: clock.Wall{},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, log.Close()) })
	require.NoError(t, log.WaitLeader(t.Context()))
	view := s.Snapshot()
	nodes := 0
	for n := range view.Nodes("") {
		nodes++
		require.Equal(t, drover.NodeStatusReady, n.Status)
		require.NotEmpty(t, n.Drivers)
		require.NotEmpty(t, n.Attributes)
	}
	require.Equal(t, 3, nodes)
	jobs, allocs := 0, 0
	for j := range view.Jobs("default", "") {
		jobs++
		for a := range view.AllocationsByJob(j.Namespace, j.ID) {
			allocs++
			require.Equal(t, drover.AllocClientRunning, a.ClientStatus)
			require.NotEmpty(t, a.NodeID)
		}
	}
	require.Equal(t, 2, jobs, "a thousand allocations each")
	require.Equal(t, 1100, allocs)
}

func TestAFolderThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	_, _, err := state.Fill(t.Context(), "/dev/null", 1, 1)
	require.Error(t, err)
}
