package e2e

import (
	"bytes"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// startServersAndNode starts three servers and an agent without server that knows them all.
func startServersAndNode(t *testing.T, extra string) (*region, *agent) {
	r := startServers(t, 3, extra)
	var dialled []string
	for _, a := range r.list {
		m := rpcOn.FindStringSubmatch(a.Output())
		require.NotNil(t, m)
		dialled = append(dialled, strconv.Quote(m[1]))
	}
	servers := clientBlock("servers = [" + strings.Join(dialled, ", ") + "]")
	node := start(t, append([]string{"-client"}, config(t, filepath.Join(t.TempDir(), "node"), extra+servers)...)...)
	return r, node
}

// TestAccessControlOfSeveralServers: tokens are made and deleted through any agent, and hold at all of them at once, also at one
// without server, and after the leader's death. A state that is restored has the tokens that it had.
func TestAccessControlOfSeveralServers(t *testing.T) {
	t.Parallel()
	const access = "acl {\n  enabled   = true\n  token_ttl = \"1s\"\n}\n"
	r, node := startServersAndNode(t, access)
	var root *api.ACLToken
	eventually(t, "a bootstrap", func() (bool, string) { // once there is a leader, and all know version 3
		var err error
		if root, _, err = r.list[1].nomad().ACLTokens().Bootstrap(nil); err != nil {
			return false, err.Error()
		}
		return true, ""
	})
	all := append([]*agent{node}, r.list...)
	for _, a := range all {
		_, _, err := a.nomad().Jobs().List(nil)
		require.ErrorContains(t, err, "403 (Permission denied)")
		_, err = a.nomad().Agent().Self()
		require.ErrorContains(t, err, "403 (Permission denied)", "also of itself")
		_, _, err = a.nomad().ACLTokens().Bootstrap(nil)
		require.ErrorContains(t, err, "400 (ACL bootstrap already done")
		a.token = root.SecretID
	}
	leads := r.agreed(3, r.list...)
	follower := r.list[(leads+1)%3]
	_, err := node.nomad().Agent().Self()
	require.NoError(t, err)

	_, err = node.nomad().ACLPolicies().Upsert(&api.ACLPolicy{Name: "look", Rules: `namespace "default" { policy = "read" }`}, nil)
	require.NoError(t, err)
	looks, _, err := follower.nomad().ACLTokens().Create(&api.ACLToken{Type: "client", Policies: []string{"look"}}, nil)
	require.NoError(t, err)
	as := func(a *agent, token *api.ACLToken) *api.Client {
		c := a.nomad()
		c.SetSecretID(token.SecretID)
		return c
	}
	for _, a := range all {
		onlyLooks(t, as(a, looks))
	}

	saved, err := follower.nomad().Operator().Snapshot(nil)
	require.NoError(t, err)
	state, err := io.ReadAll(saved)
	require.NoError(t, err)
	later, _, err := node.nomad().ACLTokens().Create(&api.ACLToken{Type: "client", Policies: []string{"look"}}, nil)
	require.NoError(t, err)
	_, err = follower.nomad().ACLTokens().Delete(looks.AccessorID, nil)
	require.NoError(t, err)
	refused := func(token *api.ACLToken, of ...*agent) {
		for _, a := range of {
			_, _, err := as(a, token).Jobs().List(nil)
			require.ErrorContains(t, err, "403 (ACL token not found)")
		}
	}
	refused(looks, all...)

	_, err = follower.nomad().Operator().SnapshotRestore(bytes.NewReader(state), nil)
	require.NoError(t, err)
	refused(later, all...)
	_, _, err = as(node, looks).Jobs().List(nil)
	require.NoError(t, err, "the state has it again")

	r.list[leads].PullThePlug()
	left := []*agent{node, follower, r.list[(leads+2)%3]}
	eventually(t, "another leader", func() (bool, string) {
		for _, a := range left {
			if _, _, err := as(a, looks).Jobs().List(nil); err != nil {
				return false, err.Error()
			}
		}
		return true, ""
	})
	_, err = node.nomad().ACLTokens().Delete(looks.AccessorID, nil)
	require.NoError(t, err)
	refused(looks, left...)
}

// onlyLooks tries that the holder of a token may read jobs and nothing else.
func onlyLooks(t *testing.T, c *api.Client) {
	_, _, err := c.Jobs().List(nil)
	require.NoError(t, err, "at once, and everywhere")
	_, _, err = c.Nodes().List(nil)
	require.ErrorContains(t, err, "403 (Permission denied)")
	_, _, err = c.Jobs().Register(serversJob("no"), nil)
	require.ErrorContains(t, err, "403 (Permission denied)")
	_, err = c.Agent().Self()
	require.ErrorContains(t, err, "403 (Permission denied)", "which each server decides by its own state")
	_, _, err = c.ACLTokens().Create(&api.ACLToken{Type: "management"}, nil)
	require.ErrorContains(t, err, "403 (Permission denied)")
}
