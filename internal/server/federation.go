package server

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/federation"
	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/lifecycle"
	"github.com/drover-project/drover/internal/peercall"
	"github.com/drover-project/drover/internal/tables"
)

// procObjects asks for what the regions share, once its index is not the caller's any more.
const procObjects = "Federation.Objects"

// pullTimeout is more than a pull waits for a change.
const pullTimeout = 30 * time.Second

// sharedObjects are the namespaces and node pools of the state.
type sharedObjects struct{ *store.Store }

// Objects implements federation.Store.
func (s sharedObjects) Objects() federation.Objects {
	snap := s.Snapshot()
	out := federation.Objects{Index: max(snap.TableIndex(tables.Namespaces), snap.TableIndex(tables.NodePools))}
	for n := range snap.Namespaces() {
		out.Namespaces = append(out.Namespaces, n)
	}
	for p := range snap.NodePools() {
		out.Pools = append(out.Pools, p)
	}
	return out
}

// serveObjects answers other regions' servers, through the leader if that is another.
func (c *control) serveObjects(wall clock.Clock) {
	peercall.Handle(c.servers.Mux(), procObjects, func(ctx context.Context, _ string, after uint64) (federation.Objects, error) {
		leader, ok := c.servers.Leader()
		switch {
		case !ok:
			return federation.Objects{}, drover.Errorf(drover.NotLeader, "No cluster leader")
		case leader.ID != c.servers.Self().ID:
			ctx, cancel := wall.WithTimeout(ctx, pullTimeout)
			defer cancel()
			return peercall.Call[federation.Objects](ctx, c.servers.Client(), leader.Address, procObjects, after)
		}
		if err := c.log.Ready(ctx); err != nil {
			return federation.Objects{}, err
		}
		return federation.Answer(ctx, sharedObjects{c.store}, wall, after), nil
	})
}

// federationPart follows the authoritative region while this server leads another.
func (a *Agent) federationPart() lifecycle.Part {
	c, authority, turn := a.control, a.cfg.Authority(), new(atomic.Uint64)
	deps := federation.Deps{
		State: sharedObjects{c.store}.Objects, Clock: a.deps.Clock, Log: a.deps.Log.With("part", "federation"),
		Propose: func(ctx context.Context, cmd command.Command) error {
			_, _, err := c.log.Propose(ctx, cmd)
			return err
		},
		Pull: func(ctx context.Context, after uint64) (federation.Objects, error) {
			var there []members.Member
			for _, m := range c.servers.Members() {
				if m.Region == authority && m.Status == members.Alive {
					there = append(there, m)
				}
			}
			if len(there) == 0 {
				return federation.Objects{}, drover.Errorf(drover.Unavailable, "no server of region %q is known", authority)
			}
			ctx, cancel := a.deps.Clock.WithTimeout(ctx, pullTimeout)
			defer cancel()
			to := there[turn.Add(1)%uint64(len(there))].RPCAddr
			return peercall.Call[federation.Objects](ctx, c.servers.Client(), to, procObjects, after)
		},
	}
	return lifecycle.Part{Name: "federation", Run: func(ctx context.Context) error {
		c.log.Follow(ctx, func(term context.Context) { federation.Run(term, deps) })
		return nil
	}}
}
