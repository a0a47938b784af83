package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
)

// TestRunnersOnANomadCluster: one agent is the cluster, through its Nomad API alone, another keeps its runners there.
func TestRunnersOnANomadCluster(t *testing.T) {
	t.Parallel()
	cluster := dev(t)
	settings := fmt.Sprintf("server {\n  enabled = true\n}\nexec {\n  nomad {\n    address = \"http://%s\"\n    driver = \"raw_exec\"\n  "+
		"}\n}\n", cluster.addr)
	dir := t.TempDir()
	service := start(t, config(t, dir, settings)...)
	c := service.native()
	env := execution.Environment{ID: "py", Image: "host", PoolSize: 2, Env: map[string]string{"A": "b c"}}
	_, full, err := c.PutEnvironmentAndWait(t.Context(), env, time.Minute)
	require.NoError(t, err)
	require.True(t, full)
	jobs, _, err := cluster.nomad().Jobs().PrefixList("drover-runner-")
	require.NoError(t, err)
	require.Len(t, jobs, 2)

	r, err := c.Claim(t.Context(), execution.ClaimRequest{Environment: "py", IdleTimeout: time.Hour, Wait: time.Minute})
	require.NoError(t, err)
	tryExecutions(t, c, r.ID)
	tryFiles(t, c, r.ID)
	eventually(t, "a full pool", func() (bool, string) {
		pool, err := c.Pool(t.Context(), "py")
		return err == nil && pool.Warm == 2 && pool.Claimed == 1, fmt.Sprint(pool, err)
	})

	service.PullThePlug()
	service = start(t, config(t, dir, settings)...)
	c = service.native()
	again, err := c.Runner(t.Context(), r.ID)
	require.NoError(t, err)
	require.Equal(t, time.Hour, again.IdleTimeout)
	eventually(t, "the pool from before", func() (bool, string) {
		pool, err := c.Pool(t.Context(), "py")
		return err == nil && pool.Warm == 2 && pool.Claimed == 1, fmt.Sprint(pool, err)
	})
	require.NoError(t, c.Release(t.Context(), r.ID))
	require.NoError(t, c.DeleteEnvironment(t.Context(), "py"))
	eventually(t, "an empty cluster", func() (bool, string) {
		jobs, _, err := cluster.nomad().Jobs().PrefixList("drover-")
		return err == nil && len(jobs) == 0, fmt.Sprint(len(jobs), err)
	})
}

func tryExecutions(t *testing.T, c *client.Client, runner string) {
	t.Helper()
	run := func(r execution.Request) (string, string, execution.Receipt) {
		s, err := c.Execute(t.Context(), runner, r)
		require.NoError(t, err)
		defer s.Close() // ended
		var out [3]strings.Builder
		for {
			f, err := s.Next(t.Context())
			require.NoError(t, err)
			if f.Receipt != nil {
				return out[execution.Stdout].String(), out[execution.Stderr].String(), *f.Receipt
			}
			out[f.Stream].Write(f.Data)
		}
	}
	out, errs, receipt := run(execution.Request{Command: `echo "$A"; echo "it's" >&2; env | grep -c ^NOMAD_; exit 3`})
	require.Equal(t, "b c\n0\n", out)
	require.Equal(t, "it's\n", errs)
	require.Equal(t, 3, receipt.ExitCode)
	out, _, _ = run(execution.Request{Command: "cat; id -un", Input: []byte("line\n")})
	require.Equal(t, "line\nnobody\n", out)
	slow := execution.Request{Command: "sleep 100"}
	slow.Limits.Wall = 300 * time.Millisecond
	_, _, receipt = run(slow)
	require.Equal(t, execution.CauseTimeout, receipt.Cause)
	out, _, _ = run(execution.Request{Command: "head -c 3000000 /dev/zero | tr '\\0' x"})
	require.Len(t, out, 3_000_000)
	limited := execution.Request{Command: "yes"}
	limited.Limits.OutputBytes = 10_000
	out, _, receipt = run(limited)
	require.Len(t, out, 10_000)
	require.Equal(t, execution.CauseOutputLimit, receipt.Cause)
	heavy := execution.Request{Command: "true"}
	heavy.Limits.MemoryMB = 10
	_, err := c.StartExecution(t.Context(), runner, heavy)
	require.Equal(t, drover.NotImplemented, drover.CodeOf(err))
}

func tryFiles(t *testing.T, c *client.Client, runner string) {
	t.Helper()
	name := "-a file\nwith 'lines'"
	require.NoError(t, c.ChangeFiles(t.Context(), runner,
		execution.FileChange{Path: "dir", Mkdir: true}, execution.FileChange{
			Path: "dir/" + name, Write: true, Data: []byte("hello"),
			Mode: 0o640,
		}))
	list, err := c.ListFiles(t.Context(), runner, execution.FileRequest{Path: "dir", Recursive: true, Privileged: true})
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, name, list[0].Path)
	require.Equal(t, int64(5), list[0].Size)
	require.Equal(t, uint32(0o640), list[0].Mode)
	f, err := c.ReadFile(t.Context(), runner, execution.FileRequest{Path: "dir/" + name, Privileged: true})
	require.NoError(t, err)
	text := make([]byte, 10)
	n, _ := f.Read(text)
	require.Equal(t, "hello", string(text[:n]))
	require.NoError(t, f.Close())
	_, err = c.ReadFile(t.Context(), runner, execution.FileRequest{Path: "nothing"})
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
	require.NoError(t, c.ChangeFiles(t.Context(), runner, execution.FileChange{Path: "./*", Delete: true}))
}
