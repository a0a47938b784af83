package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// TestAnybodyIsAskedOfItself: host, log and profiles of each server and node are had through each other one.
func TestAnybodyIsAskedOfItself(t *testing.T) {
	t.Parallel()
	r := startServers(t, 3, "enable_debug = true\n")
	r.agreed(3, r.list...)
	m := rpcOn.FindStringSubmatch(r.list[0].Output())
	require.NotNil(t, m, r.list[0].Output())
	block := "enable_debug = true\n" + clientBlock("servers = [\""+m[1]+"\"]")
	n := start(t, append([]string{"-client", "-node", "n0"}, config(t, filepath.Join(t.TempDir(), "n"), block)...)...)
	r.ready(1)
	nodes, _, err := n.nomad().Nodes().List(nil)
	require.NoError(t, err)
	for _, asked := range append(r.list[:3:3], n) {
		c := asked.nomad()
		for i, of := range r.list {
			asked.tells(of, fmt.Sprintf("s%d.global", i), "")
		}
		asked.tells(n, "", nodes[0].ID)
		leader, err := c.Agent().Host("leader", "", nil)
		require.NoError(t, err)
		require.NotEmpty(t, leader.AgentID)
	}
}

// tells asks the agent for what another one says of itself: the server with the name, or the node with the id.
func (a *agent) tells(of *agent, server, node string) {
	t, c := a.t, a.nomad()
	_, err := c.Agent().Host(server, node, nil)
	require.NoError(t, err, "%s%s", server, node)
	profile, err := c.Agent().Lookup("goroutine", api.PprofOptions{ServerID: server, NodeID: node, Debug: 2}, nil)
	require.NoError(t, err, "%s%s", server, node)
	require.Contains(t, string(profile), "goroutine ")
	command, err := c.Agent().Lookup("cmdline", api.PprofOptions{ServerID: server, NodeID: node}, nil)
	require.NoError(t, err, "%s%s", server, node)
	require.NotEmpty(t, command)
	stop := make(chan struct{})
	defer close(stop)
	params := map[string]string{"log_level": "debug"}
	if node != "" {
		params["node_id"] = node
	} else {
		params["server_id"] = server
	}
	frames, errs := c.Agent().Monitor(stop, &api.QueryOptions{Params: params})
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	patience, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		select {
		case f := <-frames:
			if f != nil && strings.Contains(string(f.Data), "[DEBUG]") {
				return
			}
		case err := <-errs:
			require.NoError(t, err, "%s%s", server, node)
		case <-ticker.C:
			of.request("GET", "/v1/agent/health", "") // it leaves a line
		case <-patience.Done():
			t.Fatalf("no line of %s%s", server, node)
		}
	}
}
