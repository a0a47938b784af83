package docker

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
)

// TestNoDaemonIsNoNews: a machine without docker was told at each start that 0 containers had been removed, with an error.
func TestNoDaemonIsNoNews(t *testing.T) {
	t.Parallel()
	var told bytes.Buffer
	d, err := New(Config{
		Endpoint: "unix://" + filepath.Join(t.TempDir(), "none.sock"), Owner: "o", Clock: clock.Wall{},
		Log: slog.New(slog.NewTextHandler(&told, nil)),
	})
	require.NoError(t, err)
	d.Restored(t.Context())
	require.Empty(t, told.String())
	require.NoError(t, d.Close())
}
