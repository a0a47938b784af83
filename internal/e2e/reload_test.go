package e2e

import (
	"crypto/tls"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// reloading is an agent whose files are changed under it.
type reloading struct {
	*agent
	dir  string // of its certificate
	args []string
}

// put writes the files of the agent's certificate, of the first authority, and whom it trusts.
func (r *reloading) put(role string, trusts ...authority) {
	r.t.Helper()
	cert, key := trusts[0].certify(role, "global")
	var all []byte
	for _, a := range trusts {
		text, err := os.ReadFile(a.ca())
		require.NoError(r.t, err)
		all = append(all, text...)
	}
	for name, from := range map[string]string{"cert": cert, "key": key} {
		text, err := os.ReadFile(from)
		require.NoError(r.t, err)
		require.NoError(r.t, os.WriteFile(filepath.Join(r.dir, name), text, 0o600))
	}
	require.NoError(r.t, os.WriteFile(filepath.Join(r.dir, "ca"), all, 0o600))
}

func (r *reloading) block(more string) string {
	return tlsBlock(filepath.Join(r.dir, "ca"), filepath.Join(r.dir, "cert"), filepath.Join(r.dir, "key"), more)
}

// taken is how often the agent took up its configuration again.
func (r *reloading) taken() int { return strings.Count(r.Output(), "took up the configuration again") }

// hangUp sends SIGHUP and waits until the agent took up its configuration.
func (r *reloading) hangUp() {
	r.t.Helper()
	before := r.taken()
	require.NoError(r.t, syscall.Kill(r.PID(), syscall.SIGHUP))
	eventually(r.t, "the configuration", func() (bool, string) { return r.taken() > before, r.Output() })
}

// shows is whether the agent's API shows the certificate in its file.
func (r *reloading) shows() bool {
	r.t.Helper()
	c, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(r.t.Context(), "tcp", r.addr)
	require.NoError(r.t, err)
	defer c.Close()
	text, err := os.ReadFile(filepath.Join(r.dir, "cert"))
	require.NoError(r.t, err)
	block, _ := pem.Decode(text)
	return string(c.(*tls.Conn).ConnectionState().PeerCertificates[0].Raw) == string(block.Bytes)
}

// TestAuthoritiesAreReplaced: a server and a node go from one authority to another without a restart, by SIGHUP and by the API,
// and meet again over new connections.
func TestAuthoritiesAreReplaced(t *testing.T) {
	t.Parallel()
	older, newer := newAuthority(t), newAuthority(t)
	port, gossip, data := freePort(t), freePort(t), t.TempDir()
	s, n := &reloading{agent: &agent{t: t}, dir: t.TempDir()}, &reloading{agent: &agent{t: t}, dir: t.TempDir()}
	s.put("server", older)
	n.put("client", older)
	settings := "log_level = \"info\"\nhttp_api_response_headers {\n  X-Team = \"one\"\n}\n"
	s.args = append([]string{"-server", "-rpc-port", port, "-serf-port", gossip},
		config(t, filepath.Join(data, "s"), s.block("http = true")+settings)...)
	s.agent = start(t, s.args...)
	n.agent = start(t, append([]string{"-client"},
		config(t, filepath.Join(data, "n"), n.block("")+clientBlock("servers = [\"127.0.0.1:"+port+"\"]"))...)...)
	ask := func(ca authority) *api.Client {
		s.tls = &api.TLSConfig{CACert: ca.ca()}
		return s.nomad()
	}
	reached := func(ca authority) (bool, string) {
		nodes, _, err := ask(ca).Nodes().List(nil)
		if err != nil || len(nodes) != 1 {
			return false, n.Output()
		}
		_, err = ask(ca).Agent().Host("", nodes[0].ID, nil)
		return err == nil, n.Output()
	}
	eventually(t, "the node", func() (bool, string) { return reached(older) })

	for _, trusts := range [][]authority{{older, newer}, {newer, older}, {newer}} {
		s.put("server", trusts...)
		n.put("client", trusts...)
		s.hangUp()
		require.True(t, s.shows())
		status, text := n.request("PUT", "/v1/agent/reload", "")
		require.Equal(t, http.StatusOK, status, text)
	}
	s.PullThePlug()
	s.agent = start(t, s.args...)
	eventually(t, "the node, which dials again", func() (bool, string) { return reached(newer) })

	tryOtherSettings(s)
}

// tryOtherSettings: the log's level and headers are taken up too, and nothing is if anything is wrong.
func tryOtherSettings(s *reloading) {
	t, file := s.t, s.args[len(s.args)-1]
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	change := func(pairs ...string) {
		require.NoError(t, os.WriteFile(file, []byte(strings.NewReplacer(pairs...).Replace(string(text))), 0o600))
	}
	team := func() string {
		hc := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
		defer hc.CloseIdleConnections()
		res, err := hc.Get("https://" + s.addr + "/v1/status/leader")
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		return res.Header.Get("X-Team")
	}
	require.Equal(t, "one", team())
	require.NotContains(t, s.Output(), "level=DEBUG")
	change(`"one"`, `"two"`, `log_level = "info"`, `log_level = "loud"`)
	require.ErrorContains(t, reload(s.nomad()), "log_level")
	require.Equal(t, "one", team())
	change(`"one"`, `"two"`, `log_level = "info"`, `log_level = "debug"`)
	require.NoError(t, reload(s.nomad()))
	require.Equal(t, "two", team())
	eventually(t, "lines of the new level", func() (bool, string) { return strings.Contains(s.Output(), "level=DEBUG"), s.Output() })
}

func reload(c *api.Client) error {
	_, err := c.Raw().Write("/v1/agent/reload", nil, nil, nil)
	return err
}
