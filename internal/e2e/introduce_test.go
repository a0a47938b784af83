package e2e

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

var jwtLine = regexp.MustCompile(`(?m)^ey[^\s]+$`)

// TestIntroductions: where introductions are asked for, the join token lets nobody in. A machine with an introduction becomes a node of its
// pool, comes again with its own identity, and when it was removed needs another introduction.
func TestIntroductions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, append([]string{"-server"}, config(t, filepath.Join(dir, "s"),
		"server {\n  client_introduction {\n    enforcement = \"strict\"\n  }\n}\n")...)...)
	m := rpcOn.FindStringSubmatch(s.Output())
	require.NotNil(t, m, s.Output())
	client := func(name, more string) []string {
		return append([]string{"-client", "-node", name}, config(t, filepath.Join(dir, name), clientBlock("servers = [\""+m[1]+"\"]\n"+more))...)
	}
	stranger := start(t, client("stranger", "")...)
	eventually(t, "the stranger's refusal", func() (bool, string) {
		return strings.Contains(stranger.Output(), "enforcement is strict"), stranger.Output()
	})
	stranger.Stop()

	code, out := s.command("node", "pool", "apply", "gpu")
	require.Zero(t, code, out)
	code, out = s.command("node", "intro", "create", "-node-pool", "none")
	require.NotZero(t, code)
	require.Contains(t, out, `no node pool "none"`)
	code, out = s.command("node", "intro", "create", "-ttl", "31m")
	require.NotZero(t, code)
	require.Contains(t, out, "TTL: must be above 0 and at most 30m0s")
	code, out = s.command("node", "intro", "create", "-node-pool", "gpu", "-node-name", "worker")
	require.Zero(t, code, out)
	intro := jwtLine.FindString(out)
	require.NotEmpty(t, intro, out)
	ready := func() (id string) {
		eventually(t, "the node", func() (bool, string) {
			list, _, err := s.nomad().Nodes().List(&api.QueryOptions{Params: map[string]string{"resources": "true"}})
			require.NoError(t, err)
			if len(list) != 1 || list[0].Status != "ready" {
				return false, fmt.Sprint(len(list), s.Output())
			}
			require.Equal(t, []string{"worker", "gpu"}, []string{list[0].Name, list[0].NodePool})
			id = list[0].ID
			return true, ""
		})
		return id
	}
	n := start(t, append(client("worker", ""), "-client-intro-token", intro)...)
	id := ready()
	var claims *api.NodeIdentityGetResponse
	eventually(t, "the node's identity", func() (bool, string) {
		var err error
		claims, err = s.nomad().Nodes().Identity().Get(&api.NodeIdentityGetRequest{NodeID: id}, nil)
		return err == nil, fmt.Sprint(err)
	})
	require.Equal(t, id, claims.Claims["nomad_node_id"])
	first := claims.Claims["jti"]
	_, err := s.nomad().Nodes().Identity().Renew(&api.NodeIdentityRenewRequest{NodeID: id}, nil)
	require.NoError(t, err)
	eventually(t, "another identity", func() (bool, string) {
		claims, err = s.nomad().Nodes().Identity().Get(&api.NodeIdentityGetRequest{NodeID: id}, nil)
		return err == nil && claims.Claims["jti"] != first, fmt.Sprint(err)
	})

	n.Stop()
	eventually(t, "the node's absence", func() (bool, string) {
		info, _, err := s.nomad().Nodes().Info(id, nil)
		require.NoError(t, err)
		return info.Status != "ready", info.Status
	})
	n = start(t, client("worker", "")...)
	require.Equal(t, id, ready(), "it comes again with its identity")
	n.Stop()
	code, out = s.command("node", "purge", id)
	require.Zero(t, code, out)
	n = start(t, client("worker", "")...)
	eventually(t, "the removed node's refusal", func() (bool, string) {
		return strings.Contains(n.Output(), "one that was removed"), n.Output()
	})
}
