package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/fleet/demand"
	"github.com/drover-project/drover/internal/fleet/office"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/lifecycle"
	"github.com/drover-project/drover/internal/node/machine"
	"github.com/drover-project/drover/internal/tables"
)

// fleet buys and returns machines: one loop a provider, over the pools in the log.
type fleetPlane struct {
	cfg     *config.Fleet // never nil
	deps    Deps
	control *control
	view    *demand.View
	server  string // host:port that machines dial
	// authority is what they know the server by, in PEM; "" without TLS between agents.
	authority string
	dataDir   string
	// datacenter of machines, unless their pool says otherwise.
	datacenter string
	// forgetful: nothing outlives the process, machines neither.
	forgetful bool
	audit     *office.AuditLog
	office    *office.Office
	meters    *fleetMeters
	sharing   *pool.Sharing

	opened chan struct{}                     // closed once this server has led
	open   func()                            // closes it
	clouds atomic.Pointer[map[string]*cloud] // by the provider's name, while this server leads; else nil
	cloud  map[string]*cloud                 // the same, of the last term; only lead uses it
}

// cloud is a provider and its loop.
type cloud struct {
	cfg      *config.FleetProvider
	provider provider.Provider // nil if it can't be used
	pool     *pool.Pool
	err      error // why it can't be used
}

func (a *Agent) openFleet() (*fleetPlane, error) {
	cfg := a.cfg.Fleet
	if cfg == nil {
		cfg = &config.Fleet{}
	}
	opened := make(chan struct{})
	f := &fleetPlane{
		cfg: cfg, deps: a.deps, control: a.control, view: a.control.view, dataDir: a.dataDir, opened: opened, open: sync.OnceFunc(func() { close(opened) }),
		forgetful: a.forgetful(), datacenter: a.cfg.Datacenter,
		server: serverAddress(a), meters: newFleetMeters(a.metrics, a.deps.Clock),
	}
	var err error
	if f.authority, err = machineAuthority(a.cfg.TLS); err != nil {
		return nil, err
	}
	folder := filepath.Join(a.dataDir, "fleet")
	if a.forgetful() {
		folder = ""
	}
	if f.audit, err = office.OpenAudit(folder, a.deps.Clock); err != nil {
		return nil, err
	}
	regions := map[string]string{}
	for _, p := range cfg.Providers {
		regions[p.Name] = p.Region
	}
	f.office = office.New(office.Deps{
		State: func() office.State { return f.control.store.Snapshot() }, Log: officeLog{f.control}, Loops: f, Audit: f.audit, Clock: f.deps.Clock,
		Regions: regions,
	})
	f.view.Listen(demand.PlacedFunc(f.meters.waited))
	f.sharing = pool.NewSharing(f.view.Recheck)
	a.metrics.Source(f.gauges)
	return f, nil
}

// demandConfig is what the fleet's view of the demand has to know of agents and providers.
func (a *Agent) demandConfig() demand.Config {
	local := map[string]bool{}
	if a.cfg.Fleet != nil {
		for _, p := range a.cfg.Fleet.Providers {
			local[p.Name] = p.Kind() != kindEC2
		}
	}
	return demand.Config{
		BrokenAttribute: machine.AttributeBroken, InterruptedAttribute: machine.AttributeInterrupted,
		Local: func(provider string) bool { return local[provider] },
	}
}

func serverAddress(a *Agent) string {
	if a.cfg.Fleet != nil && a.cfg.Fleet.Server != "" {
		return a.cfg.Fleet.Server
	}
	if adv := a.cfg.Advertise; adv != nil && adv.RPC != "" {
		return withPort(adv.RPC, a.rpc)
	}
	return a.RPCAddr()
}

func (f *fleetPlane) parts() []lifecycle.Part { return []lifecycle.Part{{Name: "fleet", Run: f.run}} }

func (f *fleetPlane) run(ctx context.Context) error {
	defer f.audit.Close()
	f.control.log.Follow(ctx, f.lead)
	if f.forgetful && f.cfg.Owner == "" { // under a name of its own they can be found again
		f.abandon(context.WithoutCancel(ctx))
	}
	return nil
}

// lead keeps the fleet for a term of office: two servers that buy would buy twice.
func (f *fleetPlane) lead(ctx context.Context) {
	who, err := f.identify(ctx)
	if err != nil {
		return // it ends with ctx, as it should
	}
	f.until(ctx, "putting the configured pools", f.putConfigured)
	clouds := map[string]*cloud{}
	for _, p := range f.cfg.Providers {
		clouds[p.Name] = f.openCloud(p, who, f.cloud[p.Name])
	}
	f.cloud = clouds
	f.share()
	var loops sync.WaitGroup
	for _, c := range clouds {
		if c.pool != nil {
			loops.Go(func() { f.keep(ctx, c) }) // ends with ctx, as all that follow
			loops.Go(func() { f.bootstrap(ctx, c, who.Key) })
			loops.Go(func() { f.followPrices(ctx, c) })
		}
	}
	f.clouds.Store(&clouds)
	f.open()
	f.follow(ctx)
	f.clouds.Store(nil)
	loops.Wait()
}

// led returns the clouds, while this server leads. Errors: NotLeader, Unavailable.
func (f *fleetPlane) led(ctx context.Context) (map[string]*cloud, error) {
	if !f.control.log.IsLeader() {
		return nil, drover.Errorf(drover.NotLeader, "the fleet is kept by the leading server, and this one does not lead")
	}
	select {
	case <-f.opened:
	case <-ctx.Done():
		return nil, drover.Errorf(drover.Unavailable, "the fleet is not open yet")
	}
	if c := f.clouds.Load(); c != nil {
		return *c, nil
	}
	return nil, drover.Errorf(drover.NotLeader, "the fleet is kept by the leading server, and this one does not lead any more")
}

// abandon destroys all machines: nothing of this process is kept, so nobody would ever find them again.
func (f *fleetPlane) abandon(ctx context.Context) {
	ctx, cancel := f.deps.Clock.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for name, c := range f.cloud {
		if c.provider == nil {
			continue
		}
		list, err := pool.ListAll(ctx, c.provider)
		for k := range list {
			if s := list[k].State; s == provider.Pending || s == provider.Running {
				err = errors.Join(err, c.provider.Destroy(ctx, list[k].ID))
			}
		}
		if err != nil {
			f.deps.Log.Warn("destroying the machines of an agent that keeps nothing", "provider", name, "error", err)
		}
	}
}

// until repeats what the log refuses until it takes it, or ctx ends.
func (f *fleetPlane) until(ctx context.Context, doing string, do func(context.Context) error) {
	for wait := 100 * time.Millisecond; ctx.Err() == nil; wait = min(2*wait, 10*time.Second) {
		err := do(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		f.deps.Log.Warn(doing+", trying again", "error", err, "in", wait)
		clock.Sleep(ctx, f.deps.Clock, wait)
	}
}

// identify returns who this Drover is, and makes that up the first time. Errors: ctx's.
func (f *fleetPlane) identify(ctx context.Context) (fleet.Identity, error) {
	f.until(ctx, "naming the fleet", func(ctx context.Context) error {
		if f.control.store.Snapshot().FleetIdentity() != nil {
			return nil
		}
		var random [40]byte
		_, _ = rand.Read(random[:]) // never fails (crypto/rand)
		_, _, err := f.control.log.Propose(ctx, &command.InitFleet{Identity: fleet.Identity{
			Owner: "drover-" + f.deps.IDs.New()[:13], Key: random[:32], Seed: binary.LittleEndian.Uint64(random[32:]),
		}})
		return err
	})
	who := f.control.store.Snapshot().FleetIdentity()
	if who == nil {
		return fleet.Identity{}, context.Cause(ctx)
	}
	out := *who
	if f.cfg.Owner != "" {
		out.Owner = f.cfg.Owner
	}
	return out, nil
}

// openCloud makes a provider's loop for a term, with the provider of the term before.
func (f *fleetPlane) openCloud(cfg *config.FleetProvider, who fleet.Identity, before *cloud) *cloud {
	c := &cloud{cfg: cfg}
	if before != nil {
		c.provider = before.provider
	}
	if c.provider == nil {
		made, err := f.newProvider(cfg, who.Owner)
		if err != nil {
			c.err = err
			f.deps.Log.Error("a provider of the fleet can't be used", "provider", cfg.Name, "error", err)
			return c
		}
		c.provider = f.meters.watch(cfg.Name, made, f.deps.Clock)
	}
	c.pool = pool.New(pool.Config{
		Owner: who.Owner, Provider: cfg.Name, Setting: cfg.Setting(), Policies: f.policies(cfg.Name), Seed: who.Seed, IDs: f.deps.IDs,
		UserData: f.userData(who.Key, cfg.Kind()), Shareable: shareable, Audit: f.note, Spent: f.spentToday, Attributes: localAttributes(cfg),
		Sharing: f.sharing, Learned: fleetLog{f, cfg.Name}.learned,
	}, pool.Deps{
		Clock: f.deps.Clock, Log: f.deps.Log.With("part", "fleet", "provider", cfg.Name), Provider: c.provider,
		Decided: func(took time.Duration) { f.meters.decided(took.Seconds(), cfg.Name) },
		Demand:  fleetLog{f, cfg.Name}, Nodes: fleetLog{f, cfg.Name}, Intents: fleetLog{f, cfg.Name},
	})
	return c
}

// spentToday is what the ledger has of a pool since midnight UTC.
func (f *fleetPlane) spentToday(name string) (sum float64) {
	for c := range f.control.store.Snapshot().FleetCosts(f.deps.Clock.Now().UTC().Format(time.DateOnly)) {
		if c.Pool == name {
			sum += c.Cost
		}
	}
	return sum
}

// note takes a line of the audit log.
func (f *fleetPlane) note(e pool.Entry) {
	f.meters.actions(e.Pool, e.What, e.Why)
	f.audit.Add(e)
	say := f.deps.Log.Info
	switch e.What {
	case pool.CloudFails:
		say = f.deps.Log.Error
	case pool.CreateFails:
		say = f.deps.Log.Warn
	}
	say("fleet: "+e.What, "provider", e.Provider, "pool", e.Pool, "instance", e.Instance, "offering", e.Offering, "why", e.Why, "reason", e.Reason)
}

// keep runs a provider's loop, again if it fails.
func (f *fleetPlane) keep(ctx context.Context, c *cloud) {
	for ctx.Err() == nil {
		if err := c.pool.Run(ctx); err != nil && ctx.Err() == nil {
			f.deps.Log.Error("the fleet's loop ended, starting it again", "provider", c.cfg.Name, "error", err)
			clock.Sleep(ctx, f.deps.Clock, time.Second)
		}
	}
}

// policies returns what pools of the provider do now, by name.
func (f *fleetPlane) policies(providerName string) []*fleet.Policy {
	var list []*fleet.Policy
	for p := range f.control.store.Snapshot().FleetPools() {
		if p.Policy.Provider == providerName {
			e := p.Effective()
			e.Datacenter = cmp.Or(e.Datacenter, f.datacenter)
			list = append(list, e)
		}
	}
	return list
}

// share tells which pools there are that can buy: they divide the work of the node pools that they serve together.
func (f *fleetPlane) share() {
	var list []*fleet.Policy
	for name, c := range f.cloud {
		if c.pool != nil {
			list = append(list, f.policies(name)...)
		}
	}
	f.sharing.Set(list)
}

// firstNodePool is where work goes that may run anywhere.
func (f *fleetPlane) firstNodePool() string {
	for p := range f.control.store.Snapshot().FleetPools() {
		if !p.Retiring {
			return p.Policy.NodePool
		}
	}
	return ""
}

// follow hands changes of pools to the loops, and forgets pools that ended once their last machine is gone.
func (f *fleetPlane) follow(ctx context.Context) {
	last := uint64(0)
	for ctx.Err() == nil {
		pools := f.control.store.Watch(tables.FleetPools, "")
		machines := f.control.store.Watch(tables.FleetInstances, "")
		s := f.control.store.Snapshot()
		if index := s.TableIndex(tables.FleetPools); index != last {
			f.share()
			for name, c := range f.cloud {
				if c.pool != nil {
					_ = c.pool.SetPolicies(ctx, f.policies(name)) // fails only with ctx
				}
			}
			last = index
		}
		ended := office.Ended(s)
		if len(ended) == 0 {
			machines = nil
			if office.Retiring(s) {
				machines = f.control.store.Watch(tables.FleetInstances, "")
			}
		} else if _, _, err := f.control.log.Propose(ctx, &command.DeleteFleetPools{Names: ended}); err != nil {
			f.deps.Log.Warn("forgetting pools of the fleet", "pools", ended, "error", err)
			clock.Sleep(ctx, f.deps.Clock, time.Second)
		}
		select {
		case <-ctx.Done():
		case <-pools:
		case <-machines:
		}
	}
}

// putConfigured stores the pools of the configuration, and lets those end that it does not have any more.
func (f *fleetPlane) putConfigured(ctx context.Context) error {
	var policies []*fleet.Policy
	for _, p := range f.cfg.Pools {
		policy, err := p.Policy()
		if err != nil {
			return err // checked before the agent started
		}
		policies = append(policies, policy)
	}
	put := office.Configured(f.control.store.Snapshot(), policies)
	if len(put) == 0 {
		return nil
	}
	return officeLog{f.control}.PutPools(ctx, put)
}

// answerWithin is how long an answer of a loop is waited for.
const answerWithin = 10 * time.Second

// Each implements office.Loops.
func (f *fleetPlane) Each(ctx context.Context, do func(name string, now time.Time, c *pool.Core) error) error {
	ctx, cancel := f.deps.Clock.WithTimeout(ctx, answerWithin)
	defer cancel()
	clouds, err := f.led(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(clouds)) {
		c := clouds[name]
		if c.pool == nil {
			continue
		}
		if err := c.pool.Do(ctx, func(now time.Time, core *pool.Core) error { return do(name, now, core) }); err != nil {
			if drover.CodeOf(err) == drover.Canceled {
				err = drover.Errorf(drover.Unavailable, "the fleet's loop of provider %s does not answer", name)
			}
			return err
		}
	}
	return nil
}

// Problem implements office.Loops.
func (f *fleetPlane) Problem(name string) string {
	clouds := f.clouds.Load()
	if clouds == nil {
		return ""
	}
	c := (*clouds)[name]
	switch {
	case c == nil:
		return fmt.Sprintf("there is no provider %q in the agent's fleet block", name)
	case c.err != nil:
		return c.err.Error()
	}
	return ""
}
