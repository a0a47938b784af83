package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider/ec2/ec2test"
)

// but are the servers without one.
func (r *region) but(i int) (out []*agent) {
	for n, a := range r.list {
		if n != i {
			out = append(out, a)
		}
	}
	return out
}

// tried is the agent's answer, while there may be no leader; nil if there is none.
func tried[T any](a *agent, path string) *T {
	status, text := a.fleet("GET", path, "", nil)
	out := new(T)
	if status != 200 || json.Unmarshal([]byte(text), out) != nil {
		return nil
	}
	return out
}

// audited are the words of what was done, as any server tells them.
func audited(a *agent) (words []string) {
	list := tried[[]fleet.Audit](a, "audit?limit=1000")
	if list == nil {
		return nil
	}
	for _, e := range *list {
		words = append(words, e.What)
	}
	return words
}

// calls is how often the cloud was asked for it.
func (c *account) calls(action string) (n int) {
	c.With(func(c *ec2test.Cloud) { n = c.Calls[action] })
	return n
}

// TestTheFleetFollowsTheLeader: the leader of three servers is killed in the middle of a create, which the cloud has done and not
// answered. The next leader is stopped in the middle of a destroy and goes on later. Each piece of work gets one machine, runs
// once, and nothing is left. What was done and paid any server tells.
func TestTheFleetFollowsTheLeader(t *testing.T) {
	t.Parallel()
	c := newAccount(t, "", "")
	r := startServers(t, 3, c.block)
	leads := r.agreed(3, r.list...)
	c.Fail("RunInstances", ec2test.Fault{Hang: true, After: true})
	ran, release := filepath.Join(c.dir, "ran"), filepath.Join(c.dir, "release")
	_, _, err := r.but(leads)[0].nomad().Jobs().Register(
		fleetJob("work", 2, "echo x >> "+ran+"; while [ ! -e "+release+" ]; do sleep 0.1; done"), nil)
	require.NoError(t, err)
	eventually(t, "the create", func() (bool, string) { _, ever := c.paid(); return ever == 2, fmt.Sprint(ever) })
	r.list[leads].PullThePlug()
	left := r.but(leads)
	second := r.agreed(3, left...)
	eventually(t, "the work", func() (bool, string) { return len(lines(t, ran)) == 2, c.said() })
	_, ever := c.paid()
	require.Equal(t, 2, ever, "no machine is bought twice")
	for _, a := range left {
		eventually(t, "the audit log", func() (bool, string) {
			words := audited(a)
			return len(words) > 0 && words[len(words)-1] == "incomplete", fmt.Sprint(words)
		})
	}
	r.list[leads] = r.start(leads, 3)
	r.agreed(3, r.list...)
	for _, a := range r.list {
		eventually(t, "what all leaders did", func() (bool, string) {
			text := strings.Join(audited(a), " ")
			return strings.Contains(text, "create") && strings.Contains(text, "active") && !strings.Contains(text, "incomplete"), text
		})
	}

	c.Fail("TerminateInstances", ec2test.Fault{Hang: true})
	require.NoError(t, os.WriteFile(release, nil, 0o600))
	eventually(t, "the destroy", func() (bool, string) { return c.calls("TerminateInstances") > 0, "" })
	require.NoError(t, syscall.Kill(r.list[second].PID(), syscall.SIGSTOP))
	third := r.agreed(3, r.but(second)...)
	require.NotEqual(t, second, third)
	eventually(t, "the end of all that costs", func() (bool, string) { now, _ := c.paid(); return now == 0, fmt.Sprint(now) })
	require.NoError(t, syscall.Kill(r.list[second].PID(), syscall.SIGCONT))
	r.agreed(3, r.list...)
	for _, a := range r.list {
		eventually(t, "an empty fleet", func() (bool, string) {
			list := tried[[]fleet.Instance](a, "instances")
			return list != nil && len(*list) == 0, fmt.Sprint(list)
		})
		eventually(t, "the ledger", func() (bool, string) {
			costs := tried[fleet.CostReport](a, "cost?by=job")
			return costs != nil && costs.Total > 0, fmt.Sprint(costs)
		})
	}
	_, ever = c.paid()
	require.Equal(t, 2, ever, "no machine is bought twice")
	require.Len(t, lines(t, ran), 2, "each piece of work ran once")
}

// TestPoolsComeFromTheState: a server that is started with another file changes nothing and says so, until it is applied.
func TestPoolsComeFromTheState(t *testing.T) {
	t.Parallel()
	c := newAccount(t, "", "max = 2")
	r := startServers(t, 3, c.block)
	r.agreed(3, r.list...)
	most := func(a *agent) int {
		p := tried[fleet.PoolStatus](a, "pool/aws")
		if p == nil {
			return -1
		}
		return p.Policy.Max
	}
	eventually(t, "the first pools", func() (bool, string) { return most(r.list[0]) == 2, "" })
	r.list[1].Stop()
	r.agreed(3, r.list[0], r.list[2])
	r.more = strings.Replace(c.block, "max = 2", "max = 5", 1)
	r.list[1] = r.start(1, 3)
	r.agreed(3, r.list...)
	eventually(t, "the difference", func() (bool, string) {
		text := r.list[1].Output()
		return strings.Contains(text, "pool aws differs in Max"), text
	})
	require.Equal(t, 2, most(r.list[0]))
	would := tried[fleet.Applied](r.list[1], "apply")
	require.NotNil(t, would)
	require.Equal(t, []fleet.KeyChange{{Key: "Max", Now: "2", Next: "5"}}, would.Changes[0].Keys)
	require.Empty(t, tried[fleet.Applied](r.list[2], "apply").Changes, "its own file is what is applied")

	status, text := r.list[1].fleet("PUT", "apply", fmt.Sprintf(`{"Version":%d}`, would.Version+1), nil)
	require.Equal(t, 409, status, text)
	var done fleet.Applied
	r.list[1].fleet("PUT", "apply", fmt.Sprintf(`{"Version":%d}`, would.Version), &done)
	require.True(t, done.Applied)
	for _, a := range r.list {
		eventually(t, "the new bound", func() (bool, string) { return most(a) == 5, fmt.Sprint(most(a)) })
		require.Contains(t, audited(a), "apply")
	}
	eventually(t, "now its file is another one", func() (bool, string) { // as soon as its own state has the pools
		would := tried[fleet.Applied](r.list[2], "apply")
		return would != nil && len(would.Changes) == 1, fmt.Sprint(would)
	})
	code, out := r.list[1].command("doctor", "-cluster")
	require.NotZero(t, code, "it is not all well")
	require.Contains(t, out, "pool aws differs in Max")
}
