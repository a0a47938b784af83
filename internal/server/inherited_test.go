package server

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/flock"
)

func lockFile(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// TestDataDirOfAKilledAgent: a child that it was just starting has its lock for a while. A living agent's is refused soon.
func TestDataDirOfAKilledAgent(t *testing.T) {
	t.Parallel()
	dead := exec.Command("true")
	require.NoError(t, dead.Run())
	for name, c := range map[string]struct {
		owner int
		had   bool
	}{
		"dead":  {dead.Process.Pid, true},
		"alive": {os.Getpid(), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "agent.lock")
			require.NoError(t, os.WriteFile(path, []byte(strconv.Itoa(c.owner)), 0o600))
			held := lockFile(t, path)
			require.NoError(t, flock.Exclusive(held))
			synctest.Test(t, func(t *testing.T) {
				a := &Agent{deps: Deps{Clock: clock.Wall{}}, lock: lockFile(t, path)}
				var child sync.WaitGroup
				defer child.Wait()
				child.Go(func() {
					time.Sleep(10 * time.Second)
					_ = flock.Close(held)
				})
				require.Equal(t, c.had, a.lockDataDir(t.Context()))
				if c.had {
					text, err := os.ReadFile(path)
					require.NoError(t, err)
					require.Equal(t, strconv.Itoa(os.Getpid()), string(text))
				}
			})
		})
	}
}

// TestPortOfAKilledAgent: the same child has the port, too.
func TestPortOfAKilledAgent(t *testing.T) {
	t.Parallel()
	first, err := listen(t.Context(), "127.0.0.1:0", "ports.http")
	require.NoError(t, err)
	address := first.Addr().String()
	synctest.Test(t, func(t *testing.T) {
		go func() { // ends before the port can be had
			time.Sleep(inheritedWait / 2)
			_ = first.Close()
		}()
		second, err := listen(t.Context(), address, "ports.http")
		require.NoError(t, err)
		_, err = listen(t.Context(), address, "ports.http")
		require.ErrorIs(t, err, unix.EADDRINUSE)
		require.Equal(t, drover.Unavailable, drover.CodeOf(err))
		require.NoError(t, second.Close())
	})
}
