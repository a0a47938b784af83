package keeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/bootstrap"
	"github.com/drover-project/drover/internal/fleet/demand"
	"github.com/drover-project/drover/internal/fleet/meters"
	"github.com/drover-project/drover/internal/fleet/office"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/telemetry"
)

// State is what the keeper reads, all of one moment. What is not known is nil.
type State interface {
	office.State
	FleetIdentity() *fleet.Identity
	FleetInstance(id string) *fleet.InstanceRecord
	FleetMemory(provider string) *fleet.Memory
	Node(id string) *drover.Node
}

// Log is what the keeper writes. Errors: NotLeader, Unavailable.
type Log interface {
	office.Log
	IsLeader() bool
	// Follow calls lead whenever this server leads, with a context that ends with the term of office. It returns when ctx
	// ends, and never calls lead twice at once.
	Follow(ctx context.Context, lead func(ctx context.Context))
	// Barrier returns once this server surely led at some moment of the call. Errors: NotLeader, Unavailable.
	Barrier(ctx context.Context) error
	InitFleet(ctx context.Context, identity fleet.Identity) error
	// NameFleet makes machines with the tag ours, too. Errors: NotImplemented while a server runs an older program.
	NameFleet(ctx context.Context, tag string) error
	DeletePools(ctx context.Context, names []string) error
	Update(ctx context.Context, u Update) error
}

// Update is what became of a provider's machines.
type Update struct {
	Put     []*fleet.InstanceRecord
	Costs   []fleet.Cost
	Learned *fleet.Memory // nil = nothing new
	Forget  []string      // instances whose rows go
}

// Changes tells when the state changed. A channel is closed by the next change.
type Changes interface {
	// Pools returns the index of the last change of the pools.
	Pools() (index uint64, changed <-chan struct{})
	Machines() (changed <-chan struct{})
}

// Nodes steers the nodes of machines. A node that is not known is no error.
type Nodes interface {
	// Drain lets no new work onto the node and moves what can be moved; what is left after within is killed (0 = never).
	Drain(ctx context.Context, node string, within time.Duration) error
	// Cordon lets no new work onto the node; what runs there goes on.
	Cordon(ctx context.Context, node string) error
	// Undrain takes Drain and Cordon back.
	Undrain(ctx context.Context, node string) error
	// Forget removes the node: what ran there is lost.
	Forget(ctx context.Context, node string) error
}

// Provider is a provider of the configuration.
type Provider struct {
	Name       string
	Kind       string            // provider.KindEC2 and so on
	Setting    string            // what its settings put into machines; machines that were made with another one are replaced
	PriceEvery time.Duration     // how often a cloud is asked for its prices
	Attributes map[string]string // that nodes of its machines have whatever their type
	// Open makes the provider for machines with the owner's tag, and with one of the others.
	Open func(owner string, others []string) (provider.Provider, error)
}

// Config is what a Keeper is made with.
type Config struct {
	Owner string          // tag of new machines; those with it are ours. "" = made once, and kept with the state
	Pools []*fleet.Policy // of the configuration; nil = it has none
	// Several says that this server is one of several. The pools of its configuration become the cluster's if it is the first to
	// lead; later only those count that package office applies. A server that is alone stores them whenever it starts.
	Several    bool
	Providers  []Provider
	Datacenter string // of machines, unless their pool says otherwise
	Home       bootstrap.Home
	Servers    func() []string // that machines dial instead of Home.Server, the same at each server; nil or empty: only that
	// Forgetful says that nothing outlives the process: its machines neither, unless they can be found under Owner.
	Forgetful bool
}

// Deps is what a Keeper needs of others.
type Deps struct {
	State   func() State // of now
	Log     Log
	Changes Changes
	Nodes   Nodes
	View    *demand.View
	Audit   *office.AuditLog
	Meters  *meters.Meters
	Clock   clock.Clock
	IDs     id.Source
	Logger  *slog.Logger
}

// Keeper buys and returns machines. It may be asked by several goroutines at once.
type Keeper struct {
	cfg     Config
	deps    Deps
	sharing *pool.Sharing

	opened chan struct{}                     // closed once this server has led
	open   func()                            // closes it
	clouds atomic.Pointer[map[string]*cloud] // by the provider's name, while this server leads; else nil
	cloud  map[string]*cloud                 // the same, of the last term; only lead uses it
}

// New returns a keeper that does nothing before Run.
func New(cfg Config, deps Deps) *Keeper {
	opened := make(chan struct{})
	return &Keeper{
		cfg: cfg, deps: deps, sharing: pool.NewSharing(deps.View.Recheck), opened: opened, open: sync.OnceFunc(func() { close(opened) }),
	}
}

// Run keeps the fleet whenever this server leads, until ctx ends. Machines stay as they are after that, unless nothing outlives
// the process.
func (k *Keeper) Run(ctx context.Context) error {
	defer k.deps.Audit.Close()
	if k.cfg.Several && k.cfg.Pools != nil {
		var naming sync.WaitGroup
		defer naming.Wait()
		naming.Go(func() { k.nameDifferences(ctx) }) // ends with ctx
	}
	k.deps.Log.Follow(ctx, k.lead)
	if k.cfg.Forgetful && k.cfg.Owner == "" { // under a name of its own they can be found again
		k.abandon(context.WithoutCancel(ctx))
	}
	return nil
}

// leading returns the clouds, while this server leads. Errors: NotLeader, Unavailable.
func (k *Keeper) leading(ctx context.Context) (map[string]*cloud, error) {
	if !k.deps.Log.IsLeader() {
		return nil, drover.Errorf(drover.NotLeader, "the fleet is kept by the leading server, and this one does not lead")
	}
	select {
	case <-k.opened:
	case <-ctx.Done():
		return nil, drover.Errorf(drover.Unavailable, "the fleet is not open yet")
	}
	if c := k.clouds.Load(); c != nil {
		return *c, nil
	}
	return nil, drover.Errorf(drover.NotLeader, "the fleet is kept by the leading server, and this one does not lead any more")
}

// answerWithin is how long an answer of a loop is waited for.
const answerWithin = 10 * time.Second

// Each implements office.Loops.
func (k *Keeper) Each(ctx context.Context, do func(name string, now time.Time, c *pool.Core) error) error {
	ctx, cancel := k.deps.Clock.WithTimeout(ctx, answerWithin)
	defer cancel()
	clouds, err := k.leading(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(clouds)) {
		c := clouds[name]
		if c.pool == nil {
			continue
		}
		if err := c.pool.Do(ctx, func(now time.Time, core *pool.Core) error { return do(name, now, core) }); err != nil {
			return silent(name, err)
		}
	}
	return nil
}

// Recorded implements office.Loops.
func (k *Keeper) Recorded(ctx context.Context, name string) error {
	ctx, cancel := k.deps.Clock.WithTimeout(ctx, answerWithin)
	defer cancel()
	clouds, err := k.leading(ctx)
	if err != nil {
		return err
	}
	if c := clouds[name]; c != nil && c.pool != nil {
		return silent(name, c.pool.Recorded(ctx))
	}
	return nil
}

// silent is the error of a loop that did not answer in time.
func silent(name string, err error) error {
	if drover.CodeOf(err) == drover.Canceled {
		return drover.Errorf(drover.Unavailable, "the fleet's loop of provider %s does not answer", name)
	}
	return err
}

// Problem implements office.Loops.
func (k *Keeper) Problem(name string) string {
	clouds := k.clouds.Load()
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

// Gauges emits what there is now. A loop that does not answer at once is left out.
func (k *Keeper) Gauges(emit telemetry.Emit) {
	clouds := k.clouds.Load()
	if clouds == nil {
		return
	}
	nodes, _ := k.deps.View.Nodes()
	k.deps.Meters.NodeGauges(emit, nodes, k.deps.State().UnfinishedByNode)
	for name, c := range *clouds {
		if c.pool == nil {
			continue
		}
		ctx, cancel := k.deps.Clock.WithTimeout(context.Background(), time.Second) //nolint:forbidigo // a reading has no context
		_ = c.pool.Do(ctx, func(now time.Time, core *pool.Core) error {
			k.deps.Meters.Gauges(emit, name, now, core)
			return nil
		})
		cancel()
	}
}

// abandon destroys all machines: nothing of this process is kept, so nobody would ever find them again.
func (k *Keeper) abandon(ctx context.Context) {
	ctx, cancel := k.deps.Clock.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for name, c := range k.cloud {
		if c.provider == nil {
			continue
		}
		list, err := pool.ListAll(ctx, c.provider)
		for n := range list {
			if slices.Contains(c.who.Former, list[n].Tags[fleet.TagOwner]) {
				continue // another cluster may have it
			}
			if s := list[n].State; s == provider.Pending || s == provider.Running {
				err = errors.Join(err, c.provider.Destroy(ctx, list[n].ID))
			}
		}
		if err != nil {
			k.deps.Logger.Warn("destroying the machines of an agent that keeps nothing", "provider", name, "error", err)
		}
	}
}
