package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
)

// TestExecutionsOfAllServersAreListed: of three servers each has some, running and ended, and any of them lists all, once.
func TestExecutionsOfAllServersAreListed(t *testing.T) {
	t.Parallel()
	r := startServers(t, 3, "")
	leads := r.agreed(3, r.list...)
	m := rpcOn.FindStringSubmatch(r.list[leads].Output())
	require.NotNil(t, m)
	start(t, append([]string{"-client"}, config(t, filepath.Join(t.TempDir(), "node"), clientBlock("servers = [\""+m[1]+"\"]"))...)...)
	_, _, err := r.list[0].native().PutEnvironmentAndWait(t.Context(), execution.Environment{ID: "e", Image: "host", PoolSize: 6}, time.Minute)
	require.NoError(t, err)
	var running, ended []string
	for i := range 6 { // claims are handed out where they are asked for, if that server has a warm runner
		c := r.list[i%3].native()
		runner, err := c.Claim(t.Context(), execution.ClaimRequest{Environment: "e", Wait: time.Minute})
		require.NoError(t, err)
		spec := execution.Spec{Argv: []string{"/bin/sh", "-c", fmt.Sprint("exit ", i)}}
		if i%2 == 0 {
			spec = execution.Spec{Argv: []string{"/bin/sleep", "600"}, Detach: -1}
		}
		x, err := c.StartExecution(t.Context(), runner.ID, execution.Request{Spec: spec})
		require.NoError(t, err)
		if i%2 == 0 {
			running = append(running, x.ID)
			continue
		}
		_, err = c.WaitExecution(t.Context(), x.ID)
		require.NoError(t, err)
		ended = append(ended, x.ID)
	}
	listed := func(a *agent, q execution.ListQuery) (ids []string) {
		q.PerPage = 2
		for {
			page, err := a.native().ListExecutions(t.Context(), q)
			require.NoError(t, err)
			require.Empty(t, page.Silent)
			for _, x := range page.Items {
				ids = append(ids, x.ID)
			}
			if q.After = page.Next; q.After == "" {
				return ids
			}
		}
	}
	for _, a := range r.list {
		require.ElementsMatch(t, slices.Concat(running, ended), listed(a, execution.ListQuery{}))
		require.ElementsMatch(t, running, listed(a, execution.ListQuery{Statuses: []string{execution.StatusRunning}}))
		require.ElementsMatch(t, ended, listed(a, execution.ListQuery{Exit: execution.ExitNonzero, Sort: "wall"}))
	}
	eventually(t, "the records", func() (bool, string) { // once all servers have them, each counts once
		page, err := r.list[0].native().ListExecutions(t.Context(), execution.ListQuery{})
		return err == nil && page.Total == 6, fmt.Sprint(page.Total, err)
	})
	endAll(t, r.list[0])
}
