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

// TestOutputOutlivesItsServer: executions have ended in runners of all servers, and nobody has read them when one server is killed. The
// runners have kept the output, and the other servers give it to who attaches. As long as a server lives the others ask it.
func TestOutputOutlivesItsServer(t *testing.T) {
	t.Parallel()
	r := startServers(t, 3, "")
	leads := r.agreed(3, r.list...)
	r.nodesOf(1)
	killed, others := r.list[(leads+1)%3], []*agent{r.list[leads], r.list[(leads+2)%3]}
	_, _, err := killed.native().PutEnvironmentAndWait(t.Context(), execution.Environment{ID: "e", Image: "host", PoolSize: 6}, time.Minute)
	require.NoError(t, err)
	c := &claims{t: t, seen: map[string]bool{}}
	c.at(2, killed, others[0], others[1])
	var ids []string
	for runner := range c.seen {
		x, err := killed.native().StartExecution(t.Context(), runner, execution.Request{Command: "echo one; echo two >&2; exit 5"})
		require.NoError(t, err)
		ids = append(ids, x.ID)
	}
	require.Len(t, ids, 6, "two or more of each server")
	const all = "one\n two\n 5 false"
	for _, id := range ids {
		eventually(t, "the record of the end", func() (bool, string) {
			x, err := others[1].native().Execution(t.Context(), id)
			return err == nil && !x.Running, fmt.Sprint(x, err)
		})
		require.Equal(t, all, outputAt(t, others[0], id))
	}
	killed.PullThePlug()
	for _, id := range ids {
		for _, s := range others {
			eventually(t, "the output", func() (bool, string) {
				text := outputAt(t, s, id)
				require.NotContains(t, text, "true", "it is not said to be gone meanwhile")
				return text == all, text
			})
		}
	}
	endAll(t, others[0])
}

// outputAt is what a server has of an execution that ended: both streams, the exit code, and whether something is missing.
func outputAt(t *testing.T, s *agent, id string) string {
	t.Helper()
	session, err := s.native().Attach(t.Context(), id, execution.Offsets{})
	if err != nil {
		return err.Error()
	}
	defer session.Close()
	var out [3]string
	skipped := false
	for {
		f, err := session.Next(t.Context())
		switch {
		case err != nil:
			return err.Error()
		case f.Receipt != nil:
			return fmt.Sprint(out[1], " ", out[2], " ", f.Receipt.ExitCode, " ", skipped)
		}
		skipped = skipped || f.Skipped
		out[f.Stream] += string(f.Data)
	}
}
