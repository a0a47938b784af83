package names

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
)

// bridge is a network of groups that lacks what it says.
type bridge struct {
	missing   string
	published bool
	up        error
}

func (b bridge) Missing() string    { return b.missing }
func (b bridge) Publishes() bool    { return b.published }
func (b bridge) Up() error          { return b.up }
func (bridge) Gateway() netip.Addr  { return netip.MustParseAddr("127.0.53.1") }
func (bridge) Guests() netip.Prefix { return netip.MustParsePrefix("127.0.53.0/24") }

func deps(b Bridge) Deps {
	return Deps{
		Faces: func() (http.Handler, error) { return http.NotFoundHandler(), nil }, Bridge: b, Clock: clock.Wall{},
	}
}

func TestTheNameServerListens(t *testing.T) {
	t.Parallel()
	none, err := Open(t.Context(), nil, deps(nil))
	require.NoError(t, err)
	require.Nil(t, none)
	s, err := Open(t.Context(), &config.DNS{Port: new(0), Addresses: []string{"127.0.53.2"}}, deps(nil))
	require.NoError(t, err)
	defer s.Close()
	host, port, err := net.SplitHostPort(s.Addr())
	require.NoError(t, err)
	require.Equal(t, "127.0.53.2", host)
	c, err := net.Dial("tcp", net.JoinHostPort(host, port))
	require.NoError(t, err, "both protocols are at one port")
	require.NoError(t, c.Close())
}

// Where groups cannot be served the reason is said with the key, and the listeners that were open are closed.
func TestWhatABridgeLacks(t *testing.T) {
	t.Parallel()
	for want, b := range map[string]Bridge{
		"dns.bridge: this agent has no bridge":                       nil,
		"dns.bridge: mode bridge cannot be had on this node: no nft": bridge{missing: "no nft"},
		"dns.bridge: groups could not reach the name server":         bridge{},
		"dns.bridge: no rights":                                      bridge{published: true, up: errors.New("no rights")},
	} {
		probe, err := net.Listen("tcp", "127.0.53.3:0")
		require.NoError(t, err)
		at := probe.Addr().(*net.TCPAddr)
		require.NoError(t, probe.Close())
		d := &config.DNS{Port: new(at.Port), Addresses: []string{"127.0.53.3"}, Bridge: true}
		_, err = Open(t.Context(), d, deps(b))
		require.ErrorContains(t, err, want)
		again, err := net.Listen("tcp", at.String())
		require.NoError(t, err, "%s: the port is free", want)
		require.NoError(t, again.Close())
	}
	_, err := Open(t.Context(), &config.DNS{Port: new(0), Addresses: []string{"127.0.53.3"}, Bridge: true}, deps(nil))
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
}
