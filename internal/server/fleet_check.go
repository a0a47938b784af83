package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/fleet/bootstrap"
	"github.com/drover-project/drover/internal/fleet/check"
	"github.com/drover-project/drover/internal/fleet/gate"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/link"
)

// CheckFleet buys one machine of a pool of the configuration, looks at it, and returns it; each step is told. No server
// needs to run: the machine's agent calls home to us. Errors: with the field to change.
func CheckFleet(ctx context.Context, cfg *config.Agent, ask fleet.Check, report func(fleet.CheckStep)) error {
	policy, cloud, err := checked(cfg, ask)
	if err != nil {
		return err
	}
	offer, err := offered(policy, ask)
	if err != nil {
		return err
	}
	owner, c := checkOwner(cfg, cloud.Name), clock.Wall{}
	p, err := openProvider(cloud, owner, cfg.DataDir, c)
	if err != nil {
		return err
	}
	door, err := openDoor(ctx, cfg, ask)
	if err != nil {
		return err
	}
	defer door.close()
	authority, err := machineAuthority(cfg.TLS)
	if err != nil {
		return err
	}
	intent, at := id.Random{}.New(), home{kind: cloud.Kind(), server: door.dial, authority: authority}
	deps := check.Deps{Provider: p, Clock: c, Home: door.await}
	if policy.SSH != nil {
		deps.Bootstrap = func(ctx context.Context, m provider.Machine, report func(fleet.CheckStep)) error {
			ssh, err := sshConfig(policy, p, m.ID, door.token, sshData(policy, at, door.token, intent))
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
		UserData: machineData(policy, at, door.token, intent), Within: cmp.Or(ask.Within, policy.BootTimeout),
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

// offered picks what is bought: the cheapest that fits what was asked for.
func offered(p *fleet.Policy, ask fleet.Check) (best fleet.Offering, err error) {
	list := slices.DeleteFunc(p.Offerings(), func(o fleet.Offering) bool {
		return ask.Type != "" && o.Type != ask.Type || ask.Zone != "" && o.Zone != ask.Zone || ask.Market != "" && o.Market != ask.Market
	})
	if len(list) == 0 {
		return best, drover.Errorf(drover.Invalid, "fleet.pool.%s: it sells nothing that is of type %q, in zone %q, on market %q (\"\" = any)", p.Name, ask.Type, ask.Zone, ask.Market)
	}
	return slices.MinFunc(list, func(a, b fleet.Offering) int { return cmp.Compare(a.Price, b.Price) }), nil
}

// checkOwner marks the machines of checks from this folder on this machine: what an earlier one left is found, and
// nothing of any fleet's is touched.
func checkOwner(cfg *config.Agent, providerName string) string {
	host, _ := os.Hostname() // then the folder has to do
	sum := sha256.Sum256([]byte(host + "\x00" + cfg.DataDir + "\x00" + providerName))
	return "drover-check-" + hex.EncodeToString(sum[:8])
}

// door is where the machine's agent calls. It is the control of one node, and has nothing for it to do.
type door struct {
	dial  string // what the machine dials
	token string
	ln    net.Listener
	srv   *http.Server
	came  chan *drover.Node
	ended chan struct{}
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
	d := &door{dial: ask.Dial, token: rand.Text(), ln: ln, came: make(chan *drover.Node, 1), ended: make(chan struct{})}
	if d.dial == "" {
		host, at, _ := net.SplitHostPort(ln.Addr().String())
		for _, public := range []string{fleetHost(cfg), host} {
			if ip := net.ParseIP(public); public != "" && (ip == nil || !ip.IsUnspecified()) {
				d.dial = net.JoinHostPort(public, at)
				break
			}
		}
	}
	if d.dial == "" {
		_ = ln.Close()
		return nil, drover.Errorf(drover.Invalid, "fleet.server: must be set, or -dial given: the address at which machines reach this one")
	}
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
	next := link.Handler(d, d, link.NewNodes())
	mutual, err := tlsFor(cfg.TLS, "rpc")
	if err != nil || mutual == nil {
		return next, mutual, err
	}
	handler, secure := gated(next, mutual, &checkRegistrar{door: d})
	return handler, secure, nil
}

// checkRegistrar certifies the one machine of a check, by an authority made for it.
type checkRegistrar struct {
	door *door
	once sync.Once
	made *gate.Authority
	err  error
}

// Authority implements gate.Registrar.
func (r *checkRegistrar) Authority() (*gate.Authority, error) {
	r.once.Do(func() { r.made, r.err = gate.NewAuthority([]byte(r.door.token)) })
	return r.made, r.err
}

// Machine implements gate.Registrar.
func (r *checkRegistrar) Machine(token string) (string, error) {
	return "check", r.door.Admit(token, nil)
}

// Certify implements gate.Registrar.
func (r *checkRegistrar) Certify(_ context.Context, who gate.Applicant, csr []byte) ([]byte, error) {
	if err := r.door.Admit(who.Token, nil); err != nil {
		return nil, err
	}
	a, err := r.Authority()
	if err != nil {
		return nil, err
	}
	return a.Certify(csr, "check", clock.Wall{}.Now())
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

func (d *door) await(ctx context.Context) (*drover.Node, error) {
	select {
	case n := <-d.came:
		return n, nil
	case <-ctx.Done():
		return nil, drover.Errorf(drover.Unavailable, "nobody called at %s: %w", d.dial, context.Cause(ctx))
	}
}

// Admit implements link.Authenticator.
func (d *door) Admit(token string, _ *drover.Node) error {
	if subtle.ConstantTimeCompare([]byte(d.token), []byte(token)) != 1 {
		return drover.Errorf(drover.Unauthorized, "the token is not that of this check")
	}
	return nil
}

// Authenticate implements link.Authenticator: there is no secret that this node could know.
func (d *door) Authenticate(string, string) error { return nil }

// Register implements exchange.Controller.
func (d *door) Register(_ context.Context, n *drover.Node) (exchange.Registration, error) {
	select {
	case d.came <- n:
	default: // it came before
	}
	return exchange.Registration{TTL: 10 * time.Second}, nil
}

// Heartbeat implements exchange.Controller.
func (d *door) Heartbeat(context.Context, string) (exchange.Registration, error) {
	return exchange.Registration{TTL: 10 * time.Second}, nil
}

// Pull implements exchange.Controller: nothing is wanted.
func (d *door) Pull(ctx context.Context, _ string, since uint64, maxWait time.Duration) (exchange.Assignment, error) {
	if since > 0 {
		clock.Sleep(ctx, clock.Wall{}, maxWait)
	}
	return exchange.Assignment{Index: max(since, 1)}, nil
}

// Push implements exchange.Controller.
func (d *door) Push(context.Context, string, []exchange.AllocUpdate) error { return nil }
