package supervisor

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

func descriptors(t *testing.T, pid int) int {
	t.Helper()
	names, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	require.NoError(t, err)
	return len(names)
}

// TestNothingPilesUpInside runs executions of all kinds, and counts the supervisor's descriptors and what it lists.
func TestNothingPilesUpInside(t *testing.T) {
	t.Parallel()
	c, _ := launch(t, nil)
	_, err := once(t.Context(), c, trueSpec)
	require.NoError(t, err)
	before := descriptors(t, c.Pid())
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { // ends after its executions
			for i := range 25 {
				for _, spec := range []execution.Spec{
					trueSpec,
					{Argv: []string{"no-such-command"}},
					{Argv: []string{"sh", "-c", "echo x; sleep 600 & exit 1"}, TTY: true, TTYStderr: i%2 == 0, Stdin: true},
					{Argv: []string{"sleep", "600"}, Limits: drover.Limits{Wall: time.Millisecond}},
				} {
					if _, err := once(ctx, c, spec); err != nil {
						t.Error(err)
					}
				}
				s, err := c.StartExecution(ctx, execution.Spec{Argv: []string{"cat"}, Stdin: true})
				if err == nil {
					err = s.Write(ctx, make([]byte, 100_000))
				}
				if err == nil {
					err = s.Close() // and so killed
				}
				if err != nil {
					t.Error(err)
				}
				files := c.Files()
				if _, r, err := files.Read(ctx, execution.FileRequest{Path: "/proc/self/status"}); err == nil {
					_, _ = io.CopyN(io.Discard, r, 10)
					_ = r.Close()
				}
			}
		})
	}
	wg.Wait()
	require.Eventually(t, func() bool {
		list, err := c.Executions(ctx)
		require.NoError(t, err)
		for _, x := range list {
			if x.Running {
				return false
			}
		}
		return descriptors(t, c.Pid()) <= before+1
	}, time.Minute, 20*time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Empty(t, c.calls)
}
