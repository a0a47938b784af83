package allocdir

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSecretsWithoutClones is a kernel before 6.15: a file system is mounted itself, and none is kept.
func TestSecretsWithoutClones(t *testing.T) {
	t.Parallel()
	s := &secrets{used: map[string]int{}, plain: true}
	if why := s.missing(); why != "" {
		require.NotEqual(t, "true", os.Getenv("CI"), why)
		t.Skip(why)
	}
	dir := t.TempDir()
	for range 2 {
		require.NoError(t, s.mount(dir, secretsMB))
		require.True(t, covered(dir))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "x"), []byte("x"), 0o600))
		require.NoError(t, s.unmount(dir))
		require.False(t, covered(dir))
		require.NoFileExists(t, filepath.Join(dir, "x"))
	}
	require.Empty(t, s.used)
	require.Empty(t, s.idle)
}
