package names

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/nameserver"
	"github.com/drover-project/drover/internal/node/egress"
	"github.com/drover-project/drover/internal/takeover"
)

// connsOfAddress is how many connections one client address may have with the name server.
const connsOfAddress = 64

// Bridge is the network of groups and runners; *bridge.Network is one.
type Bridge interface {
	Missing() string // why the network cannot be had; "" if it can
	Publishes() bool // whether what listens at its gateway can be reached from groups
	Up() error
	Gateway() netip.Addr
	Guests() netip.Prefix
}

// Deps is what a name server needs of its agent.
type Deps struct {
	Faces  func() (http.Handler, error)
	Bridge Bridge // nil for an agent without node
	Clock  clock.Clock
}

// Open opens the listeners of the name server; nil if the configuration has none. Errors: Invalid; Unavailable for a port in use, or a
// bridge that cannot be had.
func Open(ctx context.Context, d *config.DNS, deps Deps) (*nameserver.Server, error) {
	if !d.Served() {
		return nil, nil
	}
	cfg := nameserver.Config{
		Domain: d.Zone(), TTL: config.Duration(d.TTL, 0), Allow: d.Allowed(), Recursors: d.Forwarders(egress.Resolvers()),
	}
	s := nameserver.New(&cfg, Finder{Faces: deps.Faces, Token: d.Token}.Find)
	if err := deps.listen(ctx, d, &cfg); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// listen adds the listeners to the server's configuration.
func (deps Deps) listen(ctx context.Context, d *config.DNS, cfg *nameserver.Config) error {
	for _, address := range d.Listen() {
		if err := deps.listenAt(ctx, cfg, net.ListenConfig{}, address, "dns.port"); err != nil {
			return err
		}
	}
	if !d.ServesBridge() {
		return nil
	}
	bridge := deps.Bridge
	if bridge == nil {
		return drover.Errorf(drover.Invalid, "dns.bridge: this agent has no bridge: it needs client { enabled = true }, or remove the key")
	}
	if why := bridge.Missing(); why != "" {
		return drover.Errorf(drover.Unavailable, "dns.bridge: mode bridge cannot be had on this node: %s", why)
	}
	if !bridge.Publishes() {
		return drover.Errorf(drover.Unavailable,
			"dns.bridge: groups could not reach the name server, as the kernel lacks nft_socket (xt_socket): load the module, or remove the key")
	}
	if err := bridge.Up(); err != nil {
		return fmt.Errorf("dns.bridge: %w", err)
	}
	cfg.Allow = append(cfg.Allow, bridge.Guests())
	at := net.JoinHostPort(bridge.Gateway().String(), "53") // the only port that a resolver's configuration can name
	return deps.listenAt(ctx, cfg, net.ListenConfig{Control: egress.Publish}, at, "dns.bridge")
}

// listenAt listens at an address, which the key chose.
func (deps Deps) listenAt(ctx context.Context, cfg *nameserver.Config, how net.ListenConfig, address, key string) error {
	stream, err := takeover.ListenAs(ctx, how, address, key, deps.Clock)
	if err != nil {
		return err
	}
	cfg.TCP = append(cfg.TCP, httpapi.LimitConns(stream, connsOfAddress))
	packets, err := how.ListenPacket(ctx, "udp", stream.Addr().String())
	if err != nil {
		return drover.Errorf(drover.Unavailable, "%s: listening on %s: %w", key, address, err)
	}
	cfg.UDP = append(cfg.UDP, packets)
	return nil
}
