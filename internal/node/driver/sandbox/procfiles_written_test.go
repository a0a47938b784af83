package sandbox

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Two drivers in one folder wrote a file at once, and the second replaced what a sandbox of the first was about to mount.
func TestAFileThatIsThereIsNotReplaced(t *testing.T) {
	t.Parallel()
	for range 200 {
		path := filepath.Join(t.TempDir(), "f")
		var all sync.WaitGroup
		infos := make([]os.FileInfo, 4)
		for i := range infos {
			all.Go(func() {
				if err := writeNew(path, "text\n"); err != nil {
					t.Error(err)
				}
				infos[i], _ = os.Stat(path)
			})
		}
		all.Wait()
		last, err := os.Stat(path)
		require.NoError(t, err)
		for _, info := range infos {
			require.True(t, os.SameFile(last, info))
		}
		list, err := os.ReadDir(filepath.Dir(path))
		require.NoError(t, err)
		require.Len(t, list, 1)
	}
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(path, []byte("other"), 0o600))
	require.NoError(t, writeNew(path, "text\n"))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "text\n", string(text))
}
