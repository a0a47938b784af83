package sandbox

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAMemoryFileIsWrittenOnce: a start that came second replaced the file that the first was about to mount, which then
// was not to be found.
func TestAMemoryFileIsWrittenOnce(t *testing.T) {
	t.Parallel()
	for range 50 {
		d, dir := &Driver{}, t.TempDir()
		var seen sync.Map
		var starts sync.WaitGroup
		for range 8 {
			starts.Go(func() {
				name, err := d.memoryFile(dir, 64)
				if err != nil {
					seen.Store(err, true)
					return
				}
				f, err := os.Open(filepath.Join(dir, name)) // held, so that its inode is no other's
				if err == nil {
					t.Cleanup(func() { f.Close() })
					info, _ := f.Stat()
					seen.Store(info.Sys().(*syscall.Stat_t).Ino, true)
				}
				if err != nil {
					seen.Store(err, true)
				}
			})
		}
		starts.Wait()
		n := 0
		seen.Range(func(any, any) bool { n++; return true })
		require.Equal(t, 1, n)
	}
}
