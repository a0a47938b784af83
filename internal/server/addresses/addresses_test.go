package addresses

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/config/machines"
)

func TestUsableAddress(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]string{
		"[::]:4646": "127.0.0.1:4646", "0.0.0.0:4646": "127.0.0.1:4646", "10.0.0.1:4646": "10.0.0.1:4646", "[::1]:4646": "[::1]:4646",
	} {
		require.Equal(t, want, Usable(at, "127.0.0.1"))
	}
}

// listener is at an address.
type listener struct {
	net.Listener
	at net.Addr
}

func (l listener) Addr() net.Addr { return l.at }

// What is advertised has the listener's port unless it names one, and what machines are told comes before it.
func TestWhereTheServerIsDialled(t *testing.T) {
	t.Parallel()
	rpc := listener{at: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4647}}
	require.Equal(t, "a:1", WithPort("a:1", nil))
	require.Equal(t, "a:1", WithPort("a:1", rpc))
	require.Equal(t, "a", WithPort("a", nil), "there is no listener whose port it could be")
	require.Equal(t, "a:4647", WithPort("a", rpc))
	require.Equal(t, "a:0", WithPort("a", listener{at: &net.UnixAddr{Name: "/run/socket"}}))

	cfg := config.Default()
	require.Empty(t, Server(cfg, nil))
	require.Equal(t, "192.0.2.1:4647", Server(cfg, rpc))
	cfg.Advertise = &config.Addresses{RPC: "203.0.113.5"}
	require.Equal(t, "203.0.113.5:4647", Server(cfg, rpc))
	cfg.Fleet = &machines.Fleet{Server: "fleet.example:1"}
	require.Equal(t, "fleet.example:1", Server(cfg, rpc))
}

// A server's own certificate is for its role first, and for all that it may be called by, once each; what is no name is left out.
func TestNamesOfACertificate(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Addresses = &config.Addresses{HTTP: "192.0.2.1", RPC: "192.0.2.1"}
	cfg.Advertise = &config.Addresses{HTTP: "api.example", RPC: "rpc.example:7", Serf: "[2001:db8::1]:9"}
	cfg.Fleet = &machines.Fleet{Server: "fleet.example:4647"}
	cfg.Exec.PublicURL = "https://ide.example:8443/drover"
	cfg.AllowedHosts = []string{"*.example", "a b", "löwe.example", "server.global.drover", "api.example", "[2001:db8::2]"}
	host, err := os.Hostname()
	require.NoError(t, err)
	want := []string{
		"localhost", "127.0.0.1", "::1", "192.0.2.1", "api.example", "rpc.example", "2001:db8::1", "fleet.example", "ide.example",
		"2001:db8::2", host,
	}
	slices.Sort(want)
	require.Equal(t, append([]string{"server.global.drover"}, slices.Compact(want)...), Certified(cfg))

	cfg.Addresses.RPC = "0.0.0.0"
	for _, address := range ofMachine() {
		require.Contains(t, Certified(cfg), address, "it listens at all of the machine's")
	}
}

// Names in Host are checked in clear text without a token, and wherever some are listed.
func TestPagesAreGuarded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*config.Agent)
		host   string
		let    bool
	}{
		"another name":             {func(*config.Agent) {}, "evil.example", false},
		"a listed one":             {func(c *config.Agent) { c.AllowedHosts = []string{"good.example"} }, "good.example", true},
		"the proxy's":              {func(c *config.Agent) { c.Exec.PublicURL = "https://ide.example" }, "ide.example", true},
		"the advertised one":       {func(c *config.Agent) { c.Advertise = &config.Addresses{HTTP: "api.example"} }, "api.example", true},
		"any, as there is a token": {func(c *config.Agent) { c.APIToken = "t" }, "lb.example", true},
		"any, as there is TLS":     {func(c *config.Agent) { c.TLS = &config.TLS{HTTP: new(true)} }, "lb.example", true},
		"a token, and names are listed": {
			func(c *config.Agent) { c.APIToken, c.AllowedHosts = "t", []string{"good.example"} }, "lb.example", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := config.Default()
			c.change(cfg)
			g, err := Guard(cfg)
			require.NoError(t, err)
			h := g.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), slog.New(slog.DiscardHandler), clock.Wall{})
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+c.host+"/v1/jobs", nil))
			require.Equal(t, c.let, w.Code == http.StatusOK, w.Code)
		})
	}
	cfg := config.Default()
	cfg.AllowedOrigins = []string{"no origin"}
	_, err := Guard(cfg)
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	require.ErrorContains(t, err, "allowed_origins: ")
}
