package grouped_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/driver/grouped"
)

// v1 makes a task's group in the machine's v1 trees.
func v1(t *testing.T) *grouped.Groups {
	t.Helper()
	if i := cgroup.Probe("/sys/fs/cgroup"); i.Version != cgroup.V1 || !i.Writable {
		require.False(t, i.Version == cgroup.V1 && os.Getenv("CI") == "true", "CI makes groups")
		t.Skip("no v1 groups can be made here")
	}
	m, err := cgroup.New(cgroup.Config{Parent: fmt.Sprintf("drover-grouped-%d", os.Getpid())})
	require.NoError(t, err)
	task, err := m.Create("task", cgroup.Limits{}, 0)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, task.Remove(t.Context(), clock.Wall{}))
		require.NoError(t, m.Close(clock.Wall{}))
	})
	return &grouped.Groups{Task: task, Clock: clock.Wall{}}
}

func TestAnEmptyGroupServesTheNextExecution(t *testing.T) { // it counts the machine's groups
	g := v1(t)
	defer g.Close()
	first, err := g.Execution("a", drover.Limits{})
	require.NoError(t, err)
	require.NoError(t, first.Remove(t.Context()))
	require.NotNil(t, g.Find("a"), "it is kept")
	second, err := g.Execution("b", drover.Limits{})
	require.NoError(t, err)
	require.Nil(t, g.Find("a"), "it has the other's name")
	require.NotNil(t, g.Find("b"))

	program := exec.CommandContext(t.Context(), "sleep", "1000")
	require.NoError(t, program.Start())
	for _, f := range second.Files().Procs {
		_, err := fmt.Fprint(f, program.Process.Pid)
		require.NoError(t, err)
	}
	require.NoError(t, second.Remove(t.Context()))
	require.Error(t, program.Wait(), "what is left is killed")
	require.Nil(t, g.Find("b"), "and its group not used again")

	limited, err := g.Execution("c", drover.Limits{Pids: 10})
	require.NoError(t, err)
	require.NoError(t, limited.Remove(t.Context()))
	require.Nil(t, g.Find("c"))

	spent, err := g.Execution("s", drover.Limits{})
	require.NoError(t, err)
	spent.(*grouped.Group).NotAgain()
	require.NoError(t, spent.Remove(t.Context()))
	require.Nil(t, g.Find("s"))

	late, err := g.Execution("d", drover.Limits{})
	require.NoError(t, err)
	g.Close()
	require.NoError(t, late.Remove(t.Context()))
	require.Nil(t, g.Find("d"), "there is no next one")
}

func TestFewSparesAreKept(t *testing.T) { // as above
	g := v1(t)
	defer g.Close()
	removes := []func(){}
	for i := range 20 {
		e, err := g.Execution(fmt.Sprint(i), drover.Limits{})
		require.NoError(t, err)
		removes = append(removes, func() { require.NoError(t, e.Remove(t.Context())) })
	}
	for _, remove := range removes {
		remove()
	}
	var left []string
	for _, d := range g.Task.Dirs() {
		more, err := filepath.Glob(filepath.Join(d, "x.*"))
		require.NoError(t, err)
		left = append(left, more...)
	}
	require.Len(t, left, 8)
}
