package agent

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/exchange"
)

// TestSignersAreKept: an agent that starts while no server answers knows who signs.
func TestSignersAreKept(t *testing.T) {
	t.Parallel()
	cfg := Config{StateDir: t.TempDir()}
	var first signers
	require.NoError(t, first.open(cfg))
	require.Empty(t, first.of("web"))
	require.NoError(t, first.set(map[string][]string{"web": {"key"}}))
	var next signers
	require.NoError(t, next.open(cfg))
	require.Equal(t, []string{"key"}, next.of("web"))
	require.Empty(t, next.of("other"))
	require.NoError(t, next.take(exchange.Assignment{}))
	require.Equal(t, []string{"key"}, next.of("web"), "a server that knows nothing of signatures takes none back")
	require.NoError(t, next.take(exchange.Assignment{Signers: true}))
	require.Empty(t, next.of("web"))
	var last signers
	require.NoError(t, last.open(cfg))
	require.Empty(t, last.of("web"))

	require.NoError(t, os.WriteFile(filepath.Join(cfg.StateDir, "image-signers.json"), []byte("{"), 0o600))
	require.ErrorContains(t, last.open(cfg), "image-signers.json", "it is not taken for no keys")

	var memory signers
	require.NoError(t, memory.open(Config{InMemory: true}))
	require.NoError(t, memory.set(map[string][]string{"web": {"key"}}))
	require.Equal(t, []string{"key"}, memory.of("web"))
}
