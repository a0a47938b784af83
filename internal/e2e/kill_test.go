package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// TestKilledUnderLoad: kill -9 at random points while jobs are registered. What was acknowledged is there afterwards,
// runs exactly once and ends with its exit code.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	const rounds, callers = 4, 4
	args, marks := config(t, t.TempDir(), "server {\n  enabled = true\n}\n"+clientBlock("enabled = true")), t.TempDir()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var acknowledged []string
	for round := range rounds {
		a := start(t, args...)
		requireJobs(t, a, acknowledged)
		acks := make(chan string)
		var wg sync.WaitGroup
		for c := range callers {
			wg.Go(func() { registerUntilItFails(a.nomad(), fmt.Sprintf("kill-%d-%d", round, c), marks, acks) }) // ends with the agent
		}
		go func() { wg.Wait(); close(acks) }()
		left := 1 + rng.IntN(40)
		for id := range acks {
			acknowledged = append(acknowledged, id)
			if left--; left == 0 {
				require.NoError(t, a.Kill())
			}
		}
		a.PullThePlug()
	}
	a := start(t, args...)
	requireJobs(t, a, acknowledged)
	jobs := a.nomad().Jobs()
	for _, id := range acknowledged {
		eventually(t, id+" to end", func() (bool, string) {
			s, _, err := jobs.Summary(id, nil)
			return err == nil && s.Summary["g"].Complete == 1, fmt.Sprint(s, err)
		})
		ran, err := os.ReadFile(filepath.Join(marks, id))
		require.NoError(t, err)
		require.Equal(t, "ran\n", string(ran), "%s runs once", id)
	}
	t.Logf("%d jobs were acknowledged", len(acknowledged))
}

// registerUntilItFails registers jobs, each of which leaves a mark when it runs, and tells which were acknowledged.
func registerUntilItFails(c *api.Client, prefix, marks string, acks chan<- string) {
	for i := 0; ; i++ {
		id := fmt.Sprintf("%s-%d", prefix, i)
		task := api.NewTask("t", "raw_exec").SetConfig("command", "/bin/sh").
			SetConfig("args", []string{"-c", "echo ran >>" + filepath.Join(marks, id)})
		task.Resources = &api.Resources{CPU: new(1), MemoryMB: new(10)}
		j := api.NewBatchJob(id, id, "global", 50).AddTaskGroup(api.NewTaskGroup("g", 1).AddTask(task))
		if _, _, err := c.Jobs().Register(j, nil); err != nil {
			return
		}
		acks <- id
	}
}

func requireJobs(t *testing.T, a *agent, ids []string) {
	t.Helper()
	list, _, err := a.nomad().Jobs().List(nil)
	require.NoError(t, err)
	known := map[string]bool{}
	for _, j := range list {
		known[j.ID] = true
	}
	for _, id := range ids {
		require.True(t, known[id], "%s was acknowledged and is gone", id)
	}
}
