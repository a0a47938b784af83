package e2e

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// eventually waits for a condition that only another process can tell.
func eventually(t testing.TB, what string, f func() (bool, string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute) // cleanups wait too
	defer cancel()
	begun, last := time.Now(), ""
	for {
		ok, seen := f()
		if ok {
			return
		}
		last = seen
		select {
		case <-time.After(min(max(10*time.Millisecond, time.Since(begun)/20), 250*time.Millisecond)): // the machine has other work to do
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s; last: %s", what, last)
		}
	}
}

// allocation waits by blocking query until the job has an allocation in the client status.
func allocation(t testing.TB, c *api.Client, jobID, status string) *api.AllocationListStub {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	q := &api.QueryOptions{WaitTime: 10 * time.Second}
	for {
		list, meta, err := c.Jobs().Allocations(jobID, false, q.WithContext(ctx))
		require.NoError(t, err)
		for _, a := range list {
			if a.ClientStatus == status {
				return a
			}
		}
		q.WaitIndex = meta.LastIndex
	}
}

// emptyNodes reports whether all nodes are ready and nothing runs on them, or why not.
func emptyNodes(t *testing.T, s *agent) (bool, string) {
	t.Helper()
	nodes, _, err := s.nomad().Nodes().List(nil)
	require.NoError(t, err)
	for _, n := range nodes {
		if n.Status != "ready" {
			return false, n.Name + " is " + n.Status
		}
	}
	return idle(t, s.nomad())
}

// noMachine waits until all have gone, and sees that nothing of them is left.
func (a *agent) noMachine(t *testing.T) {
	t.Helper()
	eventually(t, "the machines' end", func() (bool, string) {
		list := a.machines()
		return len(list) == 0, fmt.Sprint(len(list), " machines")
	})
	eventually(t, "the nodes' end", func() (bool, string) {
		nodes, _, err := a.nomad().Nodes().List(nil)
		require.NoError(t, err)
		return len(nodes) == 0, fmt.Sprint(len(nodes), " nodes")
	})
}

// readPid waits until a task has written its process id into the file.
func readPid(t *testing.T, path string) int {
	t.Helper()
	var text []byte
	eventually(t, "the process's pid", func() (bool, string) {
		var err error
		text, err = os.ReadFile(path)
		return err == nil && strings.HasSuffix(string(text), "\n"), string(text)
	})
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	return pid
}

// nothingRuns waits until no allocation runs, or will.
func nothingRuns(t *testing.T, c *api.Client) {
	t.Helper()
	eventually(t, "the end of all allocations", func() (bool, string) { return idle(t, c) })
}

// idle reports whether no allocation runs or will, or which do.
func idle(t *testing.T, c *api.Client) (bool, string) {
	t.Helper()
	list, _, err := c.Allocations().List(&api.QueryOptions{Namespace: api.AllNamespacesNamespace})
	require.NoError(t, err)
	var seen []string
	for _, x := range list {
		if x.ClientStatus == "running" || x.ClientStatus == "pending" {
			seen = append(seen, x.Name+" shall "+x.DesiredStatus+", is "+x.ClientStatus)
		}
	}
	return len(seen) == 0, strings.Join(seen, "; ")
}
