package chaos

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/e2e/program"
	"github.com/drover-project/drover/internal/sharetest"
)

// TestTheBenchOfACluster: a small one measures what a large one does.
func TestTheBenchOfACluster(t *testing.T) {
	t.Parallel()
	sharetest.Take(t)
	c := exec.Command(program.Binary, "bench", "cluster", "-quick", "-kills", "1", "-jobs", "20", "-nodes", "10",
		"-only", "writes|failover|nodes")
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, figure := range []string{
		`"registrations acknowledged by three servers"`, `"leader killed, a write acknowledged again, p50"`, `"10 nodes: registered"`,
		`"10 nodes: 100 allocations in 1 jobs, placed and reported running"`, `"10 nodes: nodes lost after the leader","value":0,`,
	} {
		require.Contains(t, string(out), figure)
	}
}
