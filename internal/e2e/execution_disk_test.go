package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// The disk under everything is full. What is warm is still handed out, once, and what cannot be kept is refused with
// the reason; with room again the pool is back at its size.
func TestAFullDiskUnderTheExecutionService(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	require.NoError(t, unix.Mount("tmpfs", disk, "tmpfs", 0, "size=192m"), "this test needs root, as sandboxes do")
	t.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) }) // after the agent's end
	a := start(t, append([]string{"-dev"}, config(t, filepath.Join(disk, "data"), "")...)...)
	c := a.native()
	_, full, err := c.PutEnvironmentAndWait(t.Context(), execution.Environment{ID: "d", Image: "host", PoolSize: 3, DiskMB: 16},
		time.Minute)
	require.NoError(t, err)
	require.True(t, full)
	fill, err := os.Create(filepath.Join(disk, "fill"))
	require.NoError(t, err)
	defer fill.Close()
	for block := bytes.Repeat([]byte("x"), 1<<20); len(block) > 0; {
		if _, err := fill.Write(block); errors.Is(err, unix.ENOSPC) {
			block = block[:len(block)/2]
		} else {
			require.NoError(t, err)
		}
	}

	handed := map[string]bool{}
	for range 6 {
		r, err := c.Claim(t.Context(), execution.ClaimRequest{Environment: "d"})
		if err != nil {
			require.Contains(t, []drover.Code{drover.Exhausted, drover.Unavailable}, drover.CodeOf(err), err)
			continue
		}
		require.False(t, handed[r.ID], "a runner is handed out once")
		handed[r.ID] = true
	}
	require.LessOrEqual(t, len(handed), 3)
	_, _, err = c.PutEnvironment(t.Context(), execution.Environment{ID: "e", Image: "host", PoolSize: 1})
	require.ErrorContains(t, err, "no space left")

	require.NoError(t, os.Remove(fill.Name()))
	require.NoError(t, fill.Close())
	eventually(t, "the pool at its size", func() (bool, string) {
		p, err := c.Pool(t.Context(), "d")
		return err == nil && p.Warm == 3, fmt.Sprint(p, err)
	})
	for id := range handed {
		session, err := c.Execute(t.Context(), id, execution.Request{Command: "exit 5"})
		require.NoError(t, err)
		for {
			f, err := session.Next(t.Context())
			require.NoError(t, err)
			if f.Receipt != nil {
				require.Equal(t, 5, f.Receipt.ExitCode)
				break
			}
		}
		require.NoError(t, session.Close())
	}
}
