package fleetplane

import (
	"cmp"
	"context"
	"net"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/config/machines"
	"github.com/drover-project/drover/internal/fleet/bootstrap"
	"github.com/drover-project/drover/internal/fleet/check"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/server/live"
)

// Check buys one machine of a pool of the configuration, looks at it, and returns it; each step is reported. No server
// needs to run: the machine's agent calls this process. Errors: with the field to change.
func Check(ctx context.Context, cfg *config.Agent, ask fleet.Check, report func(fleet.CheckStep)) error {
	policy, cloud, err := checked(cfg, ask)
	if err != nil {
		return err
	}
	offer, err := check.Offered(policy, ask)
	if err != nil {
		return err
	}
	owner, c := check.OwnerOf(cfg.DataDir, cloud.Name), clock.Wall{}
	p, err := openProvider(cloud, owner, nil, cfg.DataDir, c)
	if err != nil {
		return err
	}
	door, err := openDoor(ctx, cfg, ask)
	if err != nil {
		return err
	}
	defer door.Close()
	at, err := machineHome(cfg, door.Home.Address())
	if err != nil {
		return err
	}
	at.Kind = cloud.Kind()
	intent, token := id.Random{}.New(), door.Home.Token()
	deps := check.Deps{Provider: p, Clock: c, Home: door.Home.Await}
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
func checked(cfg *config.Agent, ask fleet.Check) (*fleet.Policy, *machines.Provider, error) {
	if cfg.Fleet == nil {
		cfg.Fleet = &machines.Fleet{}
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
		return nil, nil, drover.Errorf(drover.NotFound,
			"the configuration has no pool %q: it has %q; give it with -config, or reach the agent where it was made with -address", ask.Pool, names)
	}
	policy.Canonicalize()
	policy.Datacenter = cmp.Or(policy.Datacenter, cfg.Datacenter)
	for _, cloud := range cfg.Fleet.Providers {
		if cloud.Name == policy.Provider {
			return policy, cloud, nil
		}
	}
	return nil, nil, drover.Errorf(drover.Invalid,
		"fleet.pool.%s.provider: there is no provider %q in the configuration; give it with -config", ask.Pool, policy.Provider)
}

// openDoor listens where the machine's agent calls. Errors: those of check.Open, Invalid for a broken configuration.
func openDoor(ctx context.Context, cfg *config.Agent, ask fleet.Check) (*check.Door, error) {
	host, _, err := net.SplitHostPort(cfg.RPCAddress())
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "addresses.rpc: %w", err)
	}
	mutual, err := live.Open(cfg.TLS, "rpc")
	if err != nil {
		return nil, err
	}
	return check.Open(ctx, check.DoorConfig{
		Listen: cmp.Or(ask.Listen, net.JoinHostPort(host, "0")), Dial: ask.Dial, Host: fleetHost(cfg), TLS: mutual.Config(), Clock: clock.Wall{},
	})
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
