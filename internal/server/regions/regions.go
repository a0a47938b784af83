package regions

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/federation"
	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/peercall"
	"github.com/drover-project/drover/internal/server/servers"
	"github.com/drover-project/drover/internal/tables"
)

// procObjects asks for what the regions share, once its index is not the caller's any more.
const procObjects = "Federation.Objects"

// pullTimeout is more than a pull waits for a change.
const pullTimeout = 30 * time.Second

// Servers are those that gossip knows, of this region and others.
type Servers interface {
	Self() servers.Server
	Leader() (servers.Server, bool)
	Members() []members.Member
	Client() *peercall.Client
	Mux() *peercall.Mux
}

// Log is this region's.
type Log interface {
	Ready(ctx context.Context) error
	Follow(ctx context.Context, lead func(ctx context.Context))
	Propose(ctx context.Context, c command.Command) (index uint64, result any, err error)
}

// Deps is what a Regions works with.
type Deps struct {
	Servers   Servers
	Log       Log
	Store     *store.Store
	Region    string // this server's
	Authority string // the authoritative region; "" if there is none
	Clock     clock.Clock
	Logger    *slog.Logger
}

// Regions is this server among those of other regions.
type Regions struct {
	deps Deps
	turn atomic.Uint64 // which server of the authoritative region is asked next
}

// New makes one that answers other regions' servers through the mux.
func New(d Deps) *Regions {
	r := &Regions{deps: d}
	peercall.Handle(d.Servers.Mux(), procObjects, func(ctx context.Context, _ string, after uint64) (federation.Objects, error) {
		return r.answer(ctx, after)
	})
	return r
}

// answer tells what the regions share, through the leader if that is another server. Errors: NotLeader.
func (r *Regions) answer(ctx context.Context, after uint64) (federation.Objects, error) {
	d := r.deps
	leader, ok := d.Servers.Leader()
	switch {
	case !ok:
		return federation.Objects{}, drover.Errorf(drover.NotLeader, "No cluster leader")
	case leader.ID != d.Servers.Self().ID:
		return r.ask(ctx, leader.Address, after)
	}
	if err := d.Log.Ready(ctx); err != nil {
		return federation.Objects{}, err
	}
	return federation.Answer(ctx, objects{d.Store, d.Region}, d.Clock, after), nil
}

// ask asks another server.
func (r *Regions) ask(ctx context.Context, address string, after uint64) (federation.Objects, error) {
	ctx, cancel := r.deps.Clock.WithTimeout(ctx, pullTimeout)
	defer cancel()
	return peercall.Call[federation.Objects](ctx, r.deps.Servers.Client(), address, procObjects, after)
}

// pull asks a living server of the authoritative region, another one each time. Errors: Unavailable if none is known.
func (r *Regions) pull(ctx context.Context, after uint64) (federation.Objects, error) {
	var there []members.Member
	for _, m := range r.deps.Servers.Members() {
		if m.Region == r.deps.Authority && m.Status == members.Alive {
			there = append(there, m)
		}
	}
	if len(there) == 0 {
		return federation.Objects{}, drover.Errorf(drover.Unavailable, "no server of region %q is known", r.deps.Authority)
	}
	return r.ask(ctx, there[r.turn.Add(1)%uint64(len(there))].RPCAddr, after)
}

// Run follows the authoritative region while this server leads another, until ctx ends.
func (r *Regions) Run(ctx context.Context) error {
	d := r.deps
	deps := federation.Deps{
		State: objects{d.Store, d.Region}.Objects, Pull: r.pull, Clock: d.Clock, Log: d.Logger,
		Propose: func(ctx context.Context, cmd command.Command) error {
			_, _, err := d.Log.Propose(ctx, cmd)
			return err
		},
	}
	d.Log.Follow(ctx, func(term context.Context) { federation.Run(term, deps) })
	return nil
}

// objects are the namespaces, node pools and quotas of the state.
type objects struct {
	*store.Store
	region string
}

// Objects implements federation.Store.
func (s objects) Objects() federation.Objects {
	snap := s.Snapshot()
	out := federation.Objects{
		Index:  max(snap.TableIndex(tables.Namespaces), snap.TableIndex(tables.NodePools), snap.TableIndex(tables.Quotas)),
		Region: s.region,
	}
	for q := range snap.Quotas("") {
		out.Quotas = append(out.Quotas, q)
	}
	for n := range snap.Namespaces() {
		out.Namespaces = append(out.Namespaces, n)
	}
	for p := range snap.NodePools() {
		out.Pools = append(out.Pools, p)
	}
	return out
}
