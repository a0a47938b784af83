package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// A server makes its authority and its certificate itself. A node with its token gets a certificate and works, and gets in again with
// it after both were killed. A node with a wrong secret, one of another authority, and one whose token names none are told why.
func TestTLSWithoutHandWork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serverArgs := append([]string{"-server"}, config(t, filepath.Join(dir, "server"), "tls {\n  auto = true\n  http = true\n}\n")...)
	s := start(t, serverArgs...)
	m := rpcOn.FindStringSubmatch(s.Output())
	require.NotNil(t, m, s.Output())
	text, err := os.ReadFile(filepath.Join(dir, "server", "join-token"))
	require.NoError(t, err)
	token := strings.TrimSpace(string(text))
	secret, pin, pinned := strings.Cut(token, "@")
	require.True(t, pinned, token)
	require.Contains(t, s.Output(), pin)
	require.NotContains(t, s.Output(), secret)
	ca := filepath.Join(dir, "server", "server", "tls", "ca.pem")

	nodeArgs := func(name, server, token string) []string {
		block := fmt.Sprintf("servers = [%q]\n  join_token = %q", server, token)
		return append([]string{"-client"}, config(t, filepath.Join(dir, name), clientBlock(block))...)
	}
	n := start(t, nodeArgs("node", m[1], token)...)
	s.tls = &api.TLSConfig{CACert: ca}
	c := s.nomad()
	ready := func(c *api.Client, want int) {
		eventually(t, "the node", func() (bool, string) {
			nodes, _, err := c.Nodes().List(nil)
			require.NoError(t, err)
			return len(nodes) == want && nodes[0].Status == "ready", fmt.Sprint(len(nodes)) + n.Output()
		})
	}
	ready(c, 1)
	_, _, err = c.Jobs().Register(rawJob("hello", "batch", "/bin/true"), nil)
	require.NoError(t, err)
	allocation(t, c, "hello", "complete")

	refused := func(name, token string, wants ...string) {
		rogue := launch(t, nodeArgs(name, m[1], token)...)
		require.Empty(t, rogue.addr, "it does not come to serve")
		for _, want := range wants {
			require.Contains(t, rogue.Output(), want)
		}
	}
	refused("rogue", "guessed@"+pin,
		"client.join_token: asking the server for a certificate: server "+m[1]+": wrong join token: give it the server's")
	refused("lured", secret+"@sha256:"+strings.Repeat("0", 64), "the server's authority is "+pin+", and the join token names sha256:000")
	refused("torn", token[:len(token)-9], "client.join_token: the join token names an authority by 55 characters", "copy it whole")
	naked := start(t, nodeArgs("naked", m[1], secret)...)
	eventually(t, "the advice", func() (bool, string) {
		return strings.Contains(naked.Output(), "the file join-token in the server's data_dir"), naked.Output()
	})
	refusesTheUncertified(t, m[1], ca, "a join token is needed")

	n.PullThePlug()
	s.PullThePlug()
	s = start(t, append(serverArgs, "-rpc-port", m[1][strings.LastIndex(m[1], ":")+1:])...)
	s.tls = &api.TLSConfig{CACert: ca}
	again, err := os.ReadFile(filepath.Join(dir, "server", "join-token"))
	require.NoError(t, err)
	require.Equal(t, string(text), string(again))
	n = start(t, nodeArgs("node", m[1], token)...)
	require.NotContains(t, n.Output(), "asking the server")
	_, _, err = s.nomad().Jobs().Register(rawJob("again", "batch", "/bin/true"), nil)
	require.NoError(t, err)
	allocation(t, s.nomad(), "again", "complete")

	found := start(t, append([]string{"-client"}, config(t, filepath.Join(dir, "found"), clientBlock("servers = [\""+m[1]+"\"]"))...)...)
	eventually(t, "the node of the same user, which finds the token", func() (bool, string) {
		nodes, _, err := s.nomad().Nodes().List(nil)
		require.NoError(t, err)
		return len(nodes) == 2, found.Output()
	})
}

// Servers that have a gossip key in common derive one authority from it: they speak the log with each other, and a node that one of them
// certified is taken by all.
func TestServersDeriveOneAuthority(t *testing.T) {
	t.Parallel()
	r := startServers(t, 3, "tls {\n  auto = true\n}\nserver {\n  encrypt = \"MDEyMzQ1Njc4OWFiY2RlZg==\"\n  join_token = \"secret\"\n}\n")
	leader := r.agreed(3, r.list...)
	pin := regexp.MustCompile(`authority=(sha256:[0-9a-f]{64})`)
	var servers []string
	for _, s := range r.list {
		servers = append(servers, fmt.Sprintf("%q", rpcOn.FindStringSubmatch(s.Output())[1]))
		require.Equal(t, pin.FindStringSubmatch(r.list[0].Output())[1], pin.FindStringSubmatch(s.Output())[1])
		require.Contains(t, s.Output(), "DROVER_JOIN_TOKEN=TOKEN@sha256:")
	}
	token := "secret@" + pin.FindStringSubmatch(r.list[0].Output())[1]
	block := clientBlock(fmt.Sprintf("servers = [%s]\n  join_token = %q", strings.Join(servers, ", "), token))
	n := start(t, append([]string{"-client"}, config(t, filepath.Join(r.dir, "node"), block)...)...)
	c := r.list[(leader+1)%3].nomad()
	eventually(t, "the node", func() (bool, string) {
		nodes, _, err := c.Nodes().List(nil)
		return err == nil && len(nodes) == 1 && nodes[0].Status == "ready", n.Output()
	})
	r.list[leader].PullThePlug()
	eventually(t, "another leader", func() (bool, string) {
		_, _, err := c.Jobs().Register(rawJob("hello", "batch", "/bin/true"), nil)
		return err == nil, fmt.Sprint(err)
	})
	allocation(t, c, "hello", "complete")
}
