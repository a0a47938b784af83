package check_test

import (
	"context"
	"log/slog"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/fleet/check"
	"github.com/drover-project/drover/internal/link"
)

// A node that dials the door with its token has come home; one with another token is not let in.
func TestAMachineCallsAtTheDoor(t *testing.T) {
	t.Parallel()
	d, err := check.Open(t.Context(), check.DoorConfig{Listen: "127.0.0.1:0", Clock: clock.Wall{}})
	require.NoError(t, err)
	defer d.Close()
	dial := func(token string) *link.Control {
		hc := link.NewHTTPClient(nil)
		t.Cleanup(hc.CloseIdleConnections)
		return link.NewControl(hc, "http://"+d.Home.Address(), link.Identity{NodeID: "n", Secret: "s", JoinToken: token})
	}
	_, err = dial("guessed").Register(t.Context(), &drover.Node{ID: "n"})
	require.Equal(t, drover.Unauthorized, drover.CodeOf(err))
	_, err = dial(d.Home.Token()).Register(t.Context(), &drover.Node{ID: "n", Name: "machine"})
	require.NoError(t, err)
	n, err := d.Home.Await(t.Context())
	require.NoError(t, err)
	require.Equal(t, "machine", n.Name)
}

// The whole of an agent's side: its tunnel is taken, then it registers.
func TestAnAgentDialsTheDoor(t *testing.T) {
	t.Parallel()
	d, err := check.Open(t.Context(), check.DoorConfig{Listen: "127.0.0.1:0", Clock: clock.Wall{}})
	require.NoError(t, err)
	defer d.Close()
	agent := link.Dial(link.DialConfig{
		Servers: []string{d.Home.Address()}, Identity: link.Identity{NodeID: "n"}, Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler),
		Tokens: func(context.Context, string) (exchange.Tokens, error) {
			return exchange.Tokens{Join: d.Home.Token()}, nil
		},
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(ctx, struct{ exchange.Workloads }{}) }() // ends with stop
	_, err = agent.Register(t.Context(), &drover.Node{ID: "n"})
	require.NoError(t, err)
	_, err = d.Home.Await(t.Context())
	require.NoError(t, err)
	stop()
	require.NoError(t, <-ended)
}

func TestAddressThatTheMachineDials(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg  check.DoorConfig
		host string // "" = refused
		port string // "" = that which is listened on
	}{
		"what is listened on":    {check.DoorConfig{Listen: "127.0.0.1:0"}, "127.0.0.1", ""},
		"a public host":          {check.DoorConfig{Listen: "0.0.0.0:0", Host: "fleet.example"}, "fleet.example", ""},
		"a public address":       {check.DoorConfig{Listen: "127.0.0.1:0", Host: "10.9.8.7"}, "10.9.8.7", ""},
		"given":                  {check.DoorConfig{Listen: "0.0.0.0:0", Host: "x", Dial: "proxy:99"}, "proxy", "99"},
		"everywhere is no place": {check.DoorConfig{Listen: "0.0.0.0:0"}, "", ""},
		"nor is a public one":    {check.DoorConfig{Listen: "[::]:0", Host: "0.0.0.0"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.cfg.Clock = clock.Wall{}
			d, err := check.Open(t.Context(), c.cfg)
			if c.host == "" {
				require.Equal(t, drover.Invalid, drover.CodeOf(err))
				require.ErrorContains(t, err, "-dial")
				return
			}
			require.NoError(t, err)
			defer d.Close()
			host, port, err := net.SplitHostPort(d.Home.Address())
			require.NoError(t, err)
			require.Equal(t, c.host, host)
			if c.port != "" {
				require.Equal(t, c.port, port)
			} else {
				require.NotContains(t, []string{"", "0"}, port)
			}
		})
	}
}

func TestDoorThatIsTaken(t *testing.T) {
	t.Parallel()
	d, err := check.Open(t.Context(), check.DoorConfig{Listen: "127.0.0.1:0", Clock: clock.Wall{}})
	require.NoError(t, err)
	defer d.Close()
	_, err = check.Open(t.Context(), check.DoorConfig{Listen: d.Home.Address(), Clock: clock.Wall{}})
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
}
