package e2e

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
)

// claims are runners that were handed out, each once.
type claims struct {
	t    *testing.T
	mu   sync.Mutex // guards seen
	seen map[string]bool
}

// at claims n runners at each of the servers, all at once, and returns those of the first.
func (c *claims) at(n int, servers ...*agent) (first []execution.Runner) {
	c.t.Helper()
	var all sync.WaitGroup
	for i, s := range servers {
		for range n {
			all.Go(func() { // ends with the answer
				r, err := s.native().Claim(c.t.Context(), execution.ClaimRequest{Environment: "e", Wait: time.Minute, IdleTimeout: -1})
				if err != nil {
					c.t.Errorf("claiming at %s: %v", s.addr, err)
					return
				}
				c.mu.Lock()
				defer c.mu.Unlock()
				if c.seen[r.ID] {
					c.t.Errorf("runner %s was handed out twice", r.ID)
				}
				c.seen[r.ID] = true
				if i == 0 {
					first = append(first, r)
				}
			})
		}
	}
	all.Wait()
	return first
}

// TestEachServerHandsOutRunners: claims at any of three servers get runners, each once. A server that hands out and keeps an
// execution is killed: the execution goes on, and is found at the others.
func TestEachServerHandsOutRunners(t *testing.T) {
	t.Parallel()
	r := startServers(t, 3, "")
	leads := r.agreed(3, r.list...)
	r.nodesOf(1)
	follower, leader, other := (leads+1)%3, r.list[leads], r.list[(leads+2)%3]
	_, _, err := leader.native().PutEnvironmentAndWait(t.Context(), execution.Environment{ID: "e", Image: "host", PoolSize: 6}, time.Minute)
	require.NoError(t, err)
	c := &claims{t: t, seen: map[string]bool{}}
	mine := c.at(4, r.list[follower], leader, other)
	require.NotEmpty(t, mine)
	started := map[string]*execution.Execution{}
	for _, one := range mine {
		x, err := r.list[follower].native().StartExecution(t.Context(), one.ID, execution.Request{Spec: execution.Spec{
			Argv: []string{"/bin/sh", "-c", "sleep 20; exit 5"}, Detach: -1,
		}})
		require.NoError(t, err)
		for _, s := range r.list {
			found, err := s.native().Execution(t.Context(), x.ID)
			require.NoError(t, err)
			require.True(t, found.Running)
		}
		started[x.ID] = &x
	}

	r.list[follower].PullThePlug()
	for id := range started {
		eventually(t, "the executions", func() (bool, string) {
			for _, s := range []*agent{leader, other} {
				x, err := s.native().Execution(t.Context(), id)
				if err != nil || x.Running {
					return false, fmt.Sprint(id, x, err)
				}
				require.Equal(t, 5, x.Receipt.ExitCode, "%+v", x.Receipt)
			}
			return true, ""
		})
	}
	for _, one := range mine {
		require.NoError(t, other.native().Release(t.Context(), one.ID))
	}
	c.at(3, leader, other)
	r.list[follower] = r.start(follower, 3)
	r.agreed(3, r.list...)
	c.at(3, r.list...)
	endAll(t, leader)
}
