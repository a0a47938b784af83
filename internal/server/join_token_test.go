package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/config"
)

func TestUsableAddress(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]string{
		"[::]:4646": "127.0.0.1:4646", "0.0.0.0:4646": "127.0.0.1:4646", "10.0.0.1:4646": "10.0.0.1:4646", "[::1]:4646": "[::1]:4646",
	} {
		require.Equal(t, want, usable(at, "127.0.0.1"))
	}
}

// A server makes its token once and keeps it where nobody else reads it.
func TestJoinTokenIsMadeOnce(t *testing.T) {
	t.Parallel()
	a := &Agent{cfg: config.Default(), dataDir: t.TempDir()}
	first, err := a.joinToken()
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(first), 26)
	info, err := os.Stat(filepath.Join(a.dataDir, "join-token"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	again, err := a.joinToken()
	require.NoError(t, err)
	require.Equal(t, first, again)

	require.NoError(t, os.WriteFile(filepath.Join(a.dataDir, "join-token"), nil, 0o600))
	_, err = a.joinToken()
	require.ErrorContains(t, err, "remove it to have one made")

	pin := "@sha256:" + strings.Repeat("ab", 32)
	require.NoError(t, os.WriteFile(filepath.Join(a.dataDir, "join-token"), []byte(pin), 0o600))
	_, err = a.joinToken()
	require.ErrorContains(t, err, "has no secret before the @; remove it to have one made")

	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("from a file\n"), 0o600))
	a.cfg.Server.JoinTokenFile = file
	token, err := a.joinToken()
	require.NoError(t, err)
	require.Equal(t, "from a file", token)
	a.cfg.Server.JoinTokenFile = file + ".not"
	_, err = a.joinToken()
	require.ErrorContains(t, err, "server.join_token_file: ")
	a.cfg.Server.JoinToken = "configured"
	token, err = a.joinToken()
	require.NoError(t, err)
	require.Equal(t, "configured", token)
	a.cfg.Server.JoinToken = pin // as of a template whose secret was empty: nobody would be asked for one
	_, err = a.joinToken()
	require.EqualError(t, err, "server.join_token: has no secret before the @")
}
