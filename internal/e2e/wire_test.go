package e2e

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/e2e/program"
)

const (
	serversKey = "encrypt = \"MDEyMzQ1Njc4OWFiY2RlZg==\"\n"
	othersKey  = "encrypt = \"ZmVkY2JhOTg3NjU0MzIxMA==\"\n"
)

// TestAnImpostorGetsNothing: what is started at the address of a listed server, and is not that one, is refused with the
// reason. It takes no entries and says why once, and the cluster's doctor and list of members say what is wrong. When the
// listed one is back all is well.
func TestAnImpostorGetsNothing(t *testing.T) {
	t.Parallel()
	r := &region{t: t, dir: t.TempDir(), more: "server {\n  " + serversKey + "}\nautopilot {\n  cleanup_dead_servers = false\n}\n"}
	r.begin(3)
	leads := r.agreed(3, r.list...)
	for _, a := range r.list {
		eventually(t, "the version", func() (bool, string) {
			v := a.stat("drover", "cluster_version")
			return v == fmt.Sprint(command.Newest), v
		})
	}
	gone := (leads + 1) % 3
	leader, name, folder := r.list[leads], fmt.Sprint("s", gone), filepath.Join(r.dir, fmt.Sprint("s", gone))
	rpc := rpcOn.FindStringSubmatch(r.list[gone].Output())
	require.NotNil(t, rpc)
	_, port, err := net.SplitHostPort(rpc[1])
	require.NoError(t, err)
	r.list[gone].PullThePlug()

	for _, c := range []struct {
		name, folder, key, region string
		expect                    int
		says, heard               string // by the impostor, and by the leader
	}{
		{"empty", t.TempDir(), serversKey, "global", 0, "means server .*, and this is server ", "it refuses: who dialled means server "},
		{
			"another cluster", t.TempDir(), serversKey, "global", 1, "means server .* of cluster .*, and this is server .* of cluster ",
			"it refuses: who dialled means server ",
		},
		{"another key", t.TempDir(), othersKey, "global", 0, "the peer has another secret", "the peer has another secret"},
		{"another region", folder, serversKey, "far", 3, "means region global, and this is region far", "this is region far"},
	} {
		a := start(t, append([]string{
			"-server", "-bootstrap-expect", fmt.Sprint(c.expect), "-node", name, "-serf-port", freePort(t), "-rpc-port", port, "-region", c.region,
		}, config(t, c.folder, "server {\n  "+c.key+"}\n")...)...)
		eventually(t, c.name+": an impostor that is known", func() (bool, string) {
			code, out := leader.command("doctor", "-cluster")
			return code == 1 && strings.Contains(out, "no entries of the log") && strings.Contains(out, c.heard) &&
				strings.Contains(out, "remove-peer"), out
		})
		code, out := leader.command("server", "members", "-detailed")
		require.Equal(t, 0, code, out)
		require.Contains(t, out, "refused=")
		has := a.taken(c.expect == 1)
		for i := range 20 {
			_, _, err := leader.nomad().Jobs().Register(serversJob(fmt.Sprint("job", i)), nil)
			require.NoError(t, err)
		}
		require.Equal(t, has, a.taken(c.expect == 1), c.name)
		told := regexp.MustCompile(`refusing a connection.*`+c.says).FindAllString(a.Output(), -1)
		require.Len(t, told, 1, "%s: %s", c.name, a.Output())
		a.PullThePlug()
	}

	r.list[gone] = r.start(gone, 3)
	r.agreed(3, r.list...)
	eventually(t, "a cluster that is well", func() (bool, string) { // but for what its disk is like in this moment
		_, out := leader.command("doctor", "-cluster")
		return strings.Contains(out, "3 of 3 voters answer") && strings.Contains(out, "All belong to one cluster") &&
			!strings.Contains(out, "no entries of the log") && !strings.Contains(out, "broken"), out
	})
}

// taken is what a server has of a log that is not its own: its last index. It is also the number of jobs where it leads a
// cluster of its own and so writes to its log itself.
func (a *agent) taken(leads bool) int {
	a.t.Helper()
	if !leads {
		return a.number("raft", "last_log_index")
	}
	jobs, _, err := a.nomad().Jobs().List(nil)
	require.NoError(a.t, err)
	return len(jobs)
}

// standing is the term and the servers of a server's log, once it leads.
func (a *agent) standing() string {
	a.t.Helper()
	eventually(a.t, "a leader", func() (bool, string) { state := a.stat("raft", "state"); return state == "Leader", state })
	return a.stat("raft", "term") + " " + a.stat("raft", "latest_configuration")
}

// TestANodesCertificateIsNoServers: at the raft port of a server with TLS a node's certificate is refused with the reason, which who
// dials hears and the server tells once.
func TestANodesCertificateIsNoServers(t *testing.T) {
	t.Parallel()
	certs := t.TempDir()
	for _, args := range [][]string{{"ca", "create"}, {"cert", "create", "-server"}, {"cert", "create", "-client"}} {
		c := exec.Command(program.Binary, append([]string{"tls"}, args...)...)
		c.Dir = certs
		out, err := c.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	file := func(pattern string) string {
		list, err := filepath.Glob(filepath.Join(certs, pattern))
		require.NoError(t, err)
		require.Len(t, list, 1, pattern)
		return list[0]
	}
	block := fmt.Sprintf("tls {\n  rpc = true\n  ca_file = %q\n  cert_file = %q\n  key_file = %q\n}\n",
		file("*-ca.pem"), file("*-server-nomad.pem"), file("*-server-nomad-key.pem"))
	s := start(t, append([]string{"-server", "-serf-port", freePort(t)}, config(t, filepath.Join(t.TempDir(), "d"), block)...)...)
	m := rpcOn.FindStringSubmatch(s.Output())
	require.NotNil(t, m, s.Output())
	pair, err := tls.LoadX509KeyPair(file("*-client-nomad.pem"), file("*-client-nomad-key.pem"))
	require.NoError(t, err)
	has := s.standing()
	for range 3 {
		c, err := tls.Dial("tcp", m[1], &tls.Config{
			Certificates: []tls.Certificate{pair}, NextProtos: []string{"drover-raft/2"},
			InsecureSkipVerify: true, // the test is about what the server sees
		})
		require.NoError(t, err)
		_, err = io.WriteString(c, "{}\n")
		require.NoError(t, err)
		answer, err := io.ReadAll(c)
		require.NoError(t, err)
		require.Contains(t, string(answer), `a server's has the name`)
		require.NoError(t, c.Close())
	}
	require.Equal(t, 1, strings.Count(s.Output(), "a server's has the name"), s.Output())
	require.Equal(t, has, s.standing())
}

// TestWhoMayNotSpeakRaft: at the raft port a protocol that nobody speaks and one without the key are refused with the reason, told once.
func TestWhoMayNotSpeakRaft(t *testing.T) {
	t.Parallel()
	s := start(t, append([]string{"-server", "-serf-port", freePort(t)},
		config(t, filepath.Join(t.TempDir(), "d"), "server {\n  "+serversKey+"}\n")...)...)
	m := rpcOn.FindStringSubmatch(s.Output())
	require.NotNil(t, m, s.Output())
	for greeting, says := range map[string]string{
		"drover-raft/9\n": "which this version does not know",
		"drover-raft/1\n" + strings.Repeat("n", 32) + strings.Repeat("p", 32): "the peer has another secret",
	} {
		has := s.standing()
		for range 3 {
			c, err := net.Dial("tcp", m[1])
			require.NoError(t, err)
			_, err = io.WriteString(c, greeting)
			require.NoError(t, err)
			_, _ = io.Copy(io.Discard, c) // it is closed, perhaps with a reset
			require.NoError(t, c.Close())
		}
		require.Equal(t, 1, strings.Count(s.Output(), says), s.Output())
		require.Equal(t, has, s.standing())
	}
}

// TestTwoClustersNeverMerge: joining a server that leads a cluster of its own is refused with what to do, and nothing changes at either.
// Who does that gets one cluster.
func TestTwoClustersNeverMerge(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	one := start(t, append([]string{"-server", "-node", "s0", "-serf-port", freePort(t)},
		config(t, filepath.Join(t.TempDir(), "d"), "server {\n  "+serversKey+"}\n")...)...)
	two := start(t, append([]string{"-server", "-node", "s1", "-serf-port", port},
		config(t, filepath.Join(t.TempDir(), "d"), "server {\n  "+serversKey+"}\n")...)...)
	had := []string{one.standing(), two.standing()}
	eventually(t, "a refusal", func() (bool, string) { // both have told their clusters' ids
		code, out := one.command("server", "join", "127.0.0.1:"+port)
		return code == 1 && strings.Contains(out, "belongs to another cluster of region global") &&
			strings.Contains(out, "two clusters never merge. Stop the server whose state is not needed") &&
			strings.Contains(out, "start it with an empty data_dir"), out
	})
	require.Equal(t, had, []string{one.standing(), two.standing()})
	for _, a := range []*agent{one, two} {
		members, err := a.nomad().Agent().Members()
		require.NoError(t, err)
		require.Len(t, members.Members, 1)
	}

	two.Stop()
	two = start(t, append([]string{"-server", "-bootstrap-expect", "0", "-node", "s1", "-serf-port", port},
		config(t, filepath.Join(t.TempDir(), "d"), "server {\n  "+serversKey+"}\n")...)...)
	code, out := one.command("server", "join", "127.0.0.1:"+port)
	require.Equal(t, 0, code, out)
	eventually(t, "one cluster", func() (bool, string) {
		n := two.stat("raft", "num_peers")
		return n == "1" || strings.Count(two.stat("raft", "latest_configuration"), "ID:") == 2, n
	})
}
