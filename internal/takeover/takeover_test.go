package takeover

import (
	"context"
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

// TestFolderOfAKilledAgent: a child that it was just starting has its lock for a while. A living agent's is refused soon.
func TestFolderOfAKilledAgent(t *testing.T) {
	t.Parallel()
	dead := exec.Command("true")
	require.NoError(t, dead.Run())
	for name, c := range map[string]struct {
		owner string
		had   bool
	}{
		"dead":     {strconv.Itoa(dead.Process.Pid), true},
		"alive":    {strconv.Itoa(os.Getpid()), false},
		"unnamed":  {"", false},
		"nonsense": {"-1", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "agent.lock")
			require.NoError(t, os.WriteFile(path, []byte(c.owner), 0o600))
			held, err := os.OpenFile(path, os.O_RDWR, 0)
			require.NoError(t, err)
			require.NoError(t, flock.Exclusive(held))
			synctest.Test(t, func(t *testing.T) {
				var child sync.WaitGroup
				defer child.Wait()
				child.Go(func() {
					time.Sleep(10 * time.Second)
					_ = flock.Close(held)
				})
				began := time.Now()
				f, err := TakeFolder(t.Context(), dir, clock.Wall{})
				if !c.had {
					require.Equal(t, drover.Conflict, drover.CodeOf(err))
					require.ErrorContains(t, err, dir+" is in use by another agent")
					require.Less(t, time.Since(began), 2*time.Second)
					return
				}
				require.NoError(t, err)
				text, err := os.ReadFile(path)
				require.NoError(t, err)
				require.Equal(t, strconv.Itoa(os.Getpid()), string(text))
				require.NoError(t, f.Close())
			})
		})
	}
}

// A lock that is never given back is not awaited for ever, though its owner is dead; nor when the caller leaves.
func TestFolderIsNotAwaitedForEver(t *testing.T) {
	t.Parallel()
	dead := exec.Command("true")
	require.NoError(t, dead.Run())
	dir := t.TempDir()
	held, err := os.Create(filepath.Join(dir, "agent.lock"))
	require.NoError(t, err)
	defer held.Close()
	_, err = held.WriteString(strconv.Itoa(dead.Process.Pid))
	require.NoError(t, err)
	require.NoError(t, flock.Exclusive(held))
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := TakeFolder(t.Context(), dir, clock.Wall{})
		require.Equal(t, drover.Conflict, drover.CodeOf(err))
		require.InDelta(t, limit.Seconds(), time.Since(began).Seconds(), 1)

		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began = time.Now()
		_, err = TakeFolder(ctx, dir, clock.Wall{})
		require.Error(t, err)
		require.Equal(t, 100*time.Millisecond, time.Since(began))
	})
}

func TestFolderIsMadeAndLocked(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "b")
	f, err := TakeFolder(t.Context(), dir, clock.Wall{})
	require.NoError(t, err)
	require.Equal(t, dir, f.Path())
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o711), info.Mode().Perm(), "sandboxes pass through, and nobody lists it")
	require.NoError(t, f.Close())
	require.DirExists(t, dir)
	again, err := TakeFolder(t.Context(), dir, clock.Wall{})
	require.NoError(t, err, "it was given back")
	require.NoError(t, again.Close())
}

func TestTemporaryFolderGoes(t *testing.T) {
	t.Parallel()
	f, err := TakeFolder(t.Context(), "", clock.Wall{})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(f.Path(), "x"), nil, 0o600))
	require.NoError(t, f.Close())
	require.NoDirExists(t, f.Path())
}

func TestFolderThatCannotBeMade(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := TakeFolder(t.Context(), filepath.Join(file, "x"), clock.Wall{})
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	require.ErrorContains(t, err, "data_dir: ")
}

// TestPortOfAKilledAgent: the same child has the port, too.
func TestPortOfAKilledAgent(t *testing.T) {
	t.Parallel()
	first, err := Listen(t.Context(), "127.0.0.1:0", "ports.http", clock.Wall{})
	require.NoError(t, err)
	address := first.Addr().String()
	synctest.Test(t, func(t *testing.T) {
		go func() { // ends before the port can be had
			time.Sleep(wait / 2)
			_ = first.Close()
		}()
		second, err := Listen(t.Context(), address, "ports.http", clock.Wall{})
		require.NoError(t, err)
		_, err = Listen(t.Context(), address, "ports.http", clock.Wall{})
		require.ErrorIs(t, err, unix.EADDRINUSE)
		require.Equal(t, drover.Unavailable, drover.CodeOf(err))
		require.ErrorContains(t, err, "-http-port or the key chooses another port")
		require.NoError(t, second.Close())
	})
}

func TestAddressThatIsNotHere(t *testing.T) {
	t.Parallel()
	_, err := Listen(t.Context(), "192.0.2.1:0", "ports.rpc", clock.Wall{})
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	require.ErrorContains(t, err, "ports.rpc: ")
	require.NotContains(t, err.Error(), "another port")
}
