package self

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/clitest"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
)

// An agent without server says what its node is, and refuses what only a server can do.
func TestAnAgentWithoutServer(t *testing.T) {
	t.Parallel()
	cfg := config.Merge(config.Default(), &config.Agent{Name: "n", Client: &config.Client{Servers: []string{"a:1", "b:2"}}})
	read := 0
	n := NodeOnly{New(Deps{
		Config: cfg, NodeID: "n1", Metrics: http.NotFoundHandler(), Clock: clock.Wall{}, Again: func() error { read++; return nil },
	})}
	self := n.Self()
	require.Equal(t, "n.global", self.Member.Name)
	require.Equal(t, map[string]string{"server": "false", "leader": "false"}, self.Stats["nomad"])
	require.Equal(t, map[string]string{"node_id": "n1"}, self.Stats["client"])
	require.Equal(t, "n1", n.LocalNode())
	server, client := n.Health()
	require.Nil(t, server)
	require.True(t, client.Ok)
	require.Equal(t, []string{"a:1", "b:2"}, n.Peers())
	require.Empty(t, n.Leader())
	require.NoError(t, n.Reload())
	require.Equal(t, 1, read)

	_, joined := n.Join(t.Context(), []string{"c"})
	_, checked := n.Checkup()
	_, watched := n.Logs("info", false)
	for _, err := range []error{joined, checked, watched, n.ForceLeave("x", false)} {
		require.Equal(t, drover.NotImplemented, drover.CodeOf(err), err)
	}
}

// The certificates are told as they are in their files: those that are missing are told where they are used.
func TestCertificatesOfTheFiles(t *testing.T) {
	t.Parallel()
	dir, api := t.TempDir(), clitest.Serve(t, nil)
	for _, args := range [][]string{{"ca", "create"}, {"cert", "create", "-server"}} {
		r := api.Run(append(append([]string{"tls"}, args...), "-dir", dir)...)
		require.Zero(t, r.Code, r.Err)
	}
	cfg := config.Default()
	require.Empty(t, New(Deps{Config: cfg, Clock: clock.Wall{}}).certificates())
	cfg.TLS = &config.TLS{
		CAFile: filepath.Join(dir, "nomad-agent-ca.pem"), CertFile: filepath.Join(dir, "global-server-nomad.pem"),
		KeyFile: filepath.Join(dir, "global-server-nomad-key.pem"),
	}
	list := New(Deps{Config: cfg, Clock: clock.Wall{}}).certificates()
	require.Len(t, list, 2)
	require.Equal(t, []string{cfg.TLS.CertFile, cfg.TLS.CAFile}, []string{list[0].File, list[1].File})
	require.True(t, list[0].Ends.After(clock.Wall{}.Now()))
	cfg.TLS.Auto = new(true)
	list = New(Deps{Config: cfg, Clock: clock.Wall{}}).certificates()
	require.Len(t, list, 1, "nobody has to renew the server's own")
	require.Equal(t, cfg.TLS.CAFile, list[0].File)
	cfg.TLS.KeyFile = filepath.Join(dir, "absent")
	require.Len(t, New(Deps{Config: cfg, Clock: clock.Wall{}}).certificates(), 1)
}
