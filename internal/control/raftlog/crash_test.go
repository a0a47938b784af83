package raftlog

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const crashDir = "DROVER_TEST_CRASH_DIR"

// crashChild proposes for ever, and prints what was acknowledged, until it is killed.
func crashChild(dir string) {
	d := deps()
	ctx := context.Background()
	l, err := Open(Config{DataDir: dir}, d)
	if err == nil {
		err = l.WaitLeader(ctx)
	}
	for i := 0; err == nil; i++ {
		job := fmt.Sprintf("j%d-%d", os.Getpid(), i)
		if _, _, err = l.Propose(ctx, register(job)); err == nil {
			fmt.Println(job)
		}
		if err == nil && i%40 == 39 {
			err = l.Snapshot()
		}
	}
	fmt.Println("ERROR", err)
}

// TestAcknowledgedWritesSurviveKill: invariant 1, with kill -9 at several points, also soon after snapshots.
func TestAcknowledgedWritesSurviveKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var acknowledged []string
	for _, after := range []int{1, 39, 75} {
		c := exec.CommandContext(t.Context(), os.Args[0])
		c.Env = append(os.Environ(), crashDir+"="+dir)
		out, err := c.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			require.False(t, strings.HasPrefix(lines.Text(), "ERROR"), lines.Text())
			acknowledged = append(acknowledged, lines.Text())
			if n == after {
				require.NoError(t, c.Process.Kill())
			}
		}
		require.Error(t, c.Wait(), "killed")
	}
	_, f := start(t, Config{DataDir: dir})
	s := f.Store().Snapshot()
	for _, id := range acknowledged {
		require.NotNil(t, s.Job("default", id), id)
	}
}
