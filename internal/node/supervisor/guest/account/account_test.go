package account

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAccountsAreReadAgainWhenTheyChange(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "passwd")
	g := &guestFile{path: path}
	require.Empty(t, g.read(), "there is none")
	require.NoError(t, os.WriteFile(path, []byte("a:x:1:1::/:\n"), 0o600))
	require.Equal(t, "a:x:1:1::/:\n", g.read())
	require.NoError(t, os.WriteFile(path+"2", []byte("b:x:1:1::/:\n"), 0o600))
	require.NoError(t, os.Rename(path+"2", path))
	require.Equal(t, "b:x:1:1::/:\n", g.read(), "as long, and another file")
	require.NoError(t, os.Remove(path))
	require.Empty(t, g.read())
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	require.Empty(t, g.read(), "it neither waits nor reads")
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("x", 2*maxAccountFile)), 0o600))
	require.Len(t, g.read(), maxAccountFile)
}
