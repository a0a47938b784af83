package e2e

import (
	"os"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/internal/e2e/program"
)

// TestMain builds the program, and checks at the end that nothing of it is left on the machine.
func TestMain(m *testing.M) { os.Exit(program.Main(m)) }

// agent is a running drover.
type agent struct {
	*program.Agent

	t     testing.TB
	addr  string         // host:port of the faces
	tls   *api.TLSConfig // how they are asked; nil is clear text
	token string         // that they are shown; "" is none
}

// start runs `drover agent args…` on a free port and waits until it serves.
func start(t testing.TB, args ...string) *agent {
	t.Helper()
	a := program.Start(t, args...)
	return &agent{Agent: a, t: t, addr: a.Addr}
}

// launch is start for an agent that may not come to serve: its addr is "" then.
func launch(t *testing.T, args ...string) *agent {
	t.Helper()
	a := program.Launch(t, args...)
	return &agent{Agent: a, t: t, addr: a.Addr}
}

// nomad returns Nomad's own client of the agent.
func (a *agent) nomad() *api.Client {
	a.t.Helper()
	cfg := &api.Config{Address: "http://" + a.addr}
	if a.tls != nil {
		cfg = &api.Config{Address: "https://" + a.addr, TLSConfig: a.tls}
	}
	cfg.SecretID = a.token
	c, err := api.NewClient(cfg)
	require.NoError(a.t, err)
	return c
}

// native returns the client of our own API.
func (a *agent) native() *client.Client {
	a.t.Helper()
	c, err := client.New("http://" + a.addr)
	require.NoError(a.t, err)
	return c
}

// config writes a configuration file, for an agent that keeps its data in dataDir unless that is empty, and returns the arguments for it.
func config(t testing.TB, dataDir, more string) []string {
	t.Helper()
	return program.Config(t, dataDir, more)
}

// clientBlock is a client block whose cgroups are this run's own.
func clientBlock(more string) string { return program.ClientBlock(more) }

// dev starts an agent that keeps nothing.
func dev(t testing.TB) *agent {
	t.Helper()
	return start(t, append([]string{"-dev"}, config(t, "", "")...)...)
}
