package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/fleet/bootstrap"
	"github.com/drover-project/drover/internal/fleet/check"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/link"
)

// CheckFleet buys one machine of a pool of the configuration, looks at it, and returns it; each step is reported. No server
// needs to run: the machine's agent calls this process. Errors: with the field to change.
func CheckFleet(ctx context.Context, cfg *config.Agent, ask fleet.Check, report func(fleet.CheckStep)) error {
	policy, cloud, err := checked(cfg, ask)
	if err != nil {
		return err
	}
	offer, err := check.Offered(policy, ask)
	if err != nil {
		return err
	}
	owner, c := check.OwnerOf(cfg.DataDir, cloud.Name), clock.Wall{}
	p, err := openProvider(cloud, owner, cfg.DataDir, c)
	if err != nil {
		return err
	}
	door, err := openDoor(ctx, cfg, ask)
	if err != nil {
		return err
	}
	defer door.close()
	at, err := machineHome(cfg, door.home.Address())
	if err != nil {
		return err
	}
	at.Kind = cloud.Kind()
	intent, token := id.Random{}.New(), door.home.Token()
	deps := check.Deps{Provider: p, Clock: c, Home: door.home.Await}
	if policy.SSH != nil {
		deps.Bootstrap = func(ctx context.Context, m provider.Machine, report func(fleet.CheckStep)) error {
			ssh, err := bootstrap.SSHConfig(policy, token, bootstrap.SSHData(policy, at, token, intent), provider.ConsoleOf(p, m.ID))
			if err != nil {
				return err
			}
			ssh.Report = func(s bootstrap.Step) {
				report(fleet.CheckStep{Name: "ssh: " + s.Name, Says: s.Says, Took: s.Took})
			}
			return bootstrap.Run(ctx, ssh, m.Address, c)
		}
	}
	return check.Run(ctx, check.Config{
		ProviderName: cloud.Name, Policy: policy, Offering: offer, Owner: owner, Intent: intent, Keep: ask.Keep,
		UserData: bootstrap.MachineData(policy, at, token, intent), Within: cmp.Or(ask.Within, policy.BootTimeout),
	}, deps, report)
}

// checked finds pool and provider in the configuration; a pool that was made over the API comes with the question.
func checked(cfg *config.Agent, ask fleet.Check) (*fleet.Policy, *config.FleetProvider, error) {
	if cfg.Fleet == nil {
		cfg.Fleet = &config.Fleet{}
	}
	policy := ask.Policy
	var names []string
	for _, block := range cfg.Fleet.Pools {
		names = append(names, block.Name)
		if block.Name != ask.Pool {
			continue
		}
		var err error
		if policy, err = block.Policy(); err != nil {
			return nil, nil, err
		}
	}
	if policy == nil {
		return nil, nil, drover.Errorf(drover.NotFound, "the configuration has no pool %q: it has %q; give it with -config, or reach the agent where it was made with -address", ask.Pool, names)
	}
	policy.Canonicalize()
	policy.Datacenter = cmp.Or(policy.Datacenter, cfg.Datacenter)
	for _, cloud := range cfg.Fleet.Providers {
		if cloud.Name == policy.Provider {
			return policy, cloud, nil
		}
	}
	return nil, nil, drover.Errorf(drover.Invalid, "fleet.pool.%s.provider: there is no provider %q in the configuration; give it with -config", ask.Pool, policy.Provider)
}

// door serves the links at which the machine's agent calls.
type door struct {
	home  *check.Home
	srv   *http.Server
	ended chan struct{} // closed when srv does not serve any more
}

// openDoor listens. Errors: Invalid for addresses at which no machine can reach us, Unavailable for one in use.
func openDoor(ctx context.Context, cfg *config.Agent, ask fleet.Check) (*door, error) {
	address := ask.Listen
	if address == "" {
		host, _, err := net.SplitHostPort(cfg.RPCAddress())
		if err != nil {
			return nil, drover.Errorf(drover.Invalid, "addresses.rpc: %w", err)
		}
		address = net.JoinHostPort(host, "0")
	}
	ln, err := listen(ctx, address, "-listen")
	if err != nil {
		return nil, err
	}
	dial := ask.Dial
	if dial == "" {
		host, at, _ := net.SplitHostPort(ln.Addr().String())
		for _, public := range []string{fleetHost(cfg), host} {
			if ip := net.ParseIP(public); public != "" && (ip == nil || !ip.IsUnspecified()) {
				dial = net.JoinHostPort(public, at)
				break
			}
		}
	}
	if dial == "" {
		_ = ln.Close()
		return nil, drover.Errorf(drover.Invalid, "fleet.server: must be set, or -dial given: the address at which machines reach this one")
	}
	d := &door{home: check.NewHome(dial, clock.Wall{}), ended: make(chan struct{})}
	handler, secure, err := d.links(cfg)
	if err != nil {
		_ = ln.Close()
		return nil, err
	}
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(secure == nil)
	protocols.SetHTTP2(secure != nil)
	d.srv = &http.Server{Handler: handler, Protocols: &protocols, TLSConfig: secure, ReadHeaderTimeout: 10 * time.Second}
	go func() { // ends with close
		defer close(d.ended)
		if secure != nil {
			_ = d.srv.ServeTLS(ln, "", "") // it was closed
		} else {
			_ = d.srv.Serve(ln)
		}
	}()
	return d, nil
}

// links is how the door is served: as by a server of the fleet, with an authority for this one machine.
func (d *door) links(cfg *config.Agent) (http.Handler, *tls.Config, error) {
	next := link.Handler(d.home, d.home, link.NewNodes())
	mutual, err := tlsFor(cfg.TLS, "rpc")
	if err != nil || mutual == nil {
		return next, mutual, err
	}
	handler, secure := gated(next, mutual, d.home)
	return handler, secure, nil
}

// fleetHost is the host at which machines reach this one, if it is configured.
func fleetHost(cfg *config.Agent) string {
	address := cfg.Fleet.Server
	if address == "" && cfg.Advertise != nil {
		address = cfg.Advertise.RPC
	}
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

func (d *door) close() {
	_ = d.srv.Close()
	<-d.ended
}
