package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// without is the servers but those with the numbers.
func (r *region) without(gone ...int) (left []*agent) {
	for i, a := range r.list {
		if !slices.Contains(gone, i) {
			left = append(left, a)
		}
	}
	return left
}

// status waits until the server with the number is so for the agent.
func (r *region) status(of *agent, i int, want string) {
	r.t.Helper()
	eventually(r.t, fmt.Sprintf("s%d that is %s", i, want), func() (bool, string) {
		members, err := of.nomad().Agent().Members()
		require.NoError(r.t, err)
		seen := ""
		for _, m := range members.Members {
			seen += " " + m.Name + " " + m.Status
			if m.Name == fmt.Sprintf("s%d.global", i) && m.Status == want {
				return true, ""
			}
		}
		return false, seen
	})
}

// TestWhichSignalsLeave: a server leaves the cluster for the signals of which that is configured; for others it is missed until it
// comes back.
func TestWhichSignalsLeave(t *testing.T) {
	t.Parallel()
	r := startServers(t, 3, "leave_on_interrupt = true\nserver {\n  encrypt = \"MDEyMzQ1Njc4OWFiY2RlZg==\"\n  rejoin_after_leave = true\n}\n"+
		"autopilot {\n  server_stabilization_time = \"1s\"\n  cleanup_dead_servers = false\n}\n")
	leads := r.agreed(3, r.list...)
	other := (leads + 1) % 3
	r.list[leads].End(syscall.SIGTERM)
	left := r.without(leads)
	next := r.agreed(3, left...)
	require.NotEqual(t, leads, next, "it handed leadership over")
	r.status(left[0], leads, "failed")
	r.list[leads] = r.start(leads, 3)
	r.agreed(3, r.list...)

	r.list[other].End(syscall.SIGINT)
	left = r.without(other)
	r.agreed(2, left...)
	r.status(left[0], other, "left")
	_, _, err := left[0].nomad().Jobs().Register(serversJob("without"), nil)
	require.NoError(t, err)
}

// TestGossipKeysAreRotated: the servers go over to another key while they run, by any of them; who was away has kept it, and who comes
// with the old one is refused.
func TestGossipKeysAreRotated(t *testing.T) {
	t.Parallel()
	const first = "MDEyMzQ1Njc4OWFiY2RlZg=="
	r := startServers(t, 3, "server {\n  encrypt = \""+first+"\"\n}\nautopilot {\n  server_stabilization_time = \"1s\"\n}\n")
	leads := r.agreed(3, r.list...)
	ask := func(args ...string) string {
		code, out := r.list[(leads+1)%3].command(append([]string{"operator", "gossip", "keyring"}, args...)...)
		require.Zero(t, code, out)
		return strings.TrimSpace(out)
	}
	second := ask("generate")
	ask("install", second)
	require.Regexp(t, regexp.QuoteMeta(first)+`\s+3 of 3\s+3 of 3`, ask("list"))
	require.Regexp(t, regexp.QuoteMeta(second)+`\s+3 of 3\s+0 of 3`, ask("list"))
	code, out := r.list[0].command("operator", "gossip", "keyring", "remove", first)
	require.NotZero(t, code, "they encrypt with it: %s", out)
	ask("use", second)
	ask("remove", first)
	require.NotContains(t, ask("list"), first)
	require.Regexp(t, regexp.QuoteMeta(second)+`\s+3 of 3\s+3 of 3`, ask("list"))

	away := (leads + 2) % 3
	r.list[away].PullThePlug()
	r.list[away] = r.start(away, 3) // its file names the old one
	r.agreed(3, r.list...)
	_, _, err := r.list[away].nomad().Jobs().Register(serversJob("again"), nil)
	require.NoError(t, err)

	r.ports = append(r.ports, freePort(t))
	late := r.start(3, 0)
	eventually(t, "a server with the old key that cannot join", func() (bool, string) {
		return strings.Contains(late.Output(), "joining"), late.Output()
	})
	members, err := late.nomad().Agent().Members()
	require.NoError(t, err)
	require.Len(t, members.Members, 1)
	late.Stop()
	r.more, r.dir = strings.Replace(r.more, first, second, 1), t.TempDir()
	r.list = append(r.list, r.start(3, 0))
	r.agreed(4, r.list...)
}

// TestZonesAndReplicas: one server of each zone votes, another of the zone takes its vote over when it dies; a read replica never
// votes, and answers.
func TestZonesAndReplicas(t *testing.T) {
	t.Parallel()
	r := &region{t: t, dir: t.TempDir(), more: "autopilot {\n  server_stabilization_time = \"1s\"\n  enable_redundancy_zones = true\n}\n"}
	r.each = func(i int) string {
		if i == 4 {
			return "server {\n  non_voting_server = true\n}\n"
		}
		return fmt.Sprintf("server {\n  redundancy_zone = %q\n}\n", []string{"a", "b", "c"}[i%3])
	}
	r.begin(3)
	r.agreed(3, r.list...)
	for i := 3; i < 5; i++ {
		r.ports = append(r.ports, freePort(t))
		r.list = append(r.list, r.start(i, 0))
	}
	votes := func(of *agent) map[string]bool {
		c, err := of.nomad().Operator().RaftGetConfiguration(&api.QueryOptions{AllowStale: true})
		require.NoError(t, err)
		out := map[string]bool{}
		for _, s := range c.Servers {
			name, _, _ := strings.Cut(s.Node, ".")
			out[name] = s.Voter
		}
		return out
	}
	zoned := map[string]bool{"s0": true, "s1": true, "s2": true, "s3": false, "s4": false}
	eventually(t, "five servers", func() (bool, string) { return len(votes(r.list[4])) == 5, fmt.Sprint(votes(r.list[4])) })
	require.Equal(t, zoned, votes(r.list[4]))
	eventually(t, "health with zones", func() (bool, string) {
		h, _, err := r.list[1].nomad().Operator().AutopilotServerHealth(nil)
		if err != nil {
			return false, err.Error()
		}
		a := h.RedundancyZones["a"]
		return h.Healthy && len(h.ReadReplicas) == 1 && len(h.RedundancyZones) == 3 && len(a.Servers) == 2 && len(a.Voters) == 1,
			fmt.Sprintf("%+v", h)
	})
	_, _, err := r.list[4].nomad().Jobs().Register(serversJob("by-a-replica"), nil)
	require.NoError(t, err)
	eventually(t, "what it wrote", func() (bool, string) {
		_, _, err := r.list[4].nomad().Jobs().Info("by-a-replica", &api.QueryOptions{AllowStale: true})
		return err == nil, fmt.Sprint(err)
	})

	r.list[0].PullThePlug()
	eventually(t, "the vote of the zone's other server", func() (bool, string) {
		v := votes(r.list[1])
		return v["s3"] && !v["s0"] && !v["s4"], fmt.Sprint(v)
	})
	r.agreed(3, r.without(0)...)
}
