package agent

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/supervisor"
)

func TestReclaimFollowsTheLinkToASocket(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	state, memory := filepath.Join(dir, "state"), filepath.Join(dir, "memory")
	reclaim := reclaimer(clock.Wall{}, slog.New(slog.DiscardHandler))
	require.NoError(t, reclaim(t.Context(), state), "nothing was started")
	require.NoError(t, os.MkdirAll(state, 0o700))
	require.NoError(t, os.Symlink(memory, supervisor.SocketPath(state)))
	require.NoError(t, reclaim(t.Context(), state), "the machine was started again")
	require.NoError(t, os.Remove(supervisor.SocketPath(state)))

	binary, err := supervisor.Binary(dir)
	require.NoError(t, err)
	opts := supervisor.Options{Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler)}
	client, err := supervisor.Launch(t.Context(), supervisor.LaunchConfig{Binary: binary, ID: "x", StateDir: state, WorkDir: "/"}, opts)
	require.NoError(t, err)
	defer client.Close()
	require.NoError(t, os.Rename(supervisor.SocketPath(state), memory))
	require.NoError(t, os.Symlink(memory, supervisor.SocketPath(state)))
	require.NoError(t, reclaim(t.Context(), state))
	<-client.Done()
	_, err = supervisor.Connect(t.Context(), supervisor.SocketPath(state), opts)
	require.ErrorIs(t, err, driver.ErrGone)
}
