package assignment

import (
	"context"
	"log/slog"
	"reflect"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/scheduler/feasible"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/control/trigger"
	"github.com/drover-project/drover/internal/control/volumes"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/id"
)

// Log commits commands; *raftlog.Log satisfies it.
type Log interface {
	Propose(ctx context.Context, c command.Command) (index uint64, result any, err error)
}

// Leader notes signs of life; *leader.Leader satisfies it.
type Leader interface {
	// Heartbeat returns within what time the next one is wanted.
	Heartbeat(nodeID string) time.Duration
	Leading() bool
}

// Deps is what a Controller needs.
type Deps struct {
	Log    Log
	Store  *store.Store
	Leader Leader
	Clock  clock.Clock
	IDs    id.Source // used by several goroutines at once
	Logger *slog.Logger
	// Several says that there are other servers, of which one may know more than this one. A lone server tells nodes what to run
	// before its own term has begun, too: nobody can know more.
	Several bool
	// Touch returns an error while this server is cut off from the leader, so that its state may be old. It is asked with Several.
	Touch func() error
}

// Controller implements exchange.Controller.
type Controller struct {
	deps   Deps
	pushes pushes
	looks  looks
}

var _ exchange.Controller = (*Controller)(nil)

// New returns a Controller.
func New(deps Deps) *Controller {
	return &Controller{deps: deps}
}

func (c *Controller) maker() trigger.Maker {
	return trigger.Maker{IDs: c.deps.IDs, Now: c.deps.Clock.Now().UnixNano()}
}

// leads returns an error if another server has to decide, as the state of this one may be older than that one's.
func (c *Controller) leads() error {
	switch {
	case !c.deps.Several:
		return nil
	case !c.deps.Leader.Leading():
		return drover.Errorf(drover.NotLeader, "this server does not lead")
	case c.deps.Store.Snapshot().Cluster().Age() == "":
		return drover.Errorf(drover.NotLeader, "the cluster has not begun")
	}
	return nil
}

// Register implements exchange.Controller. A registration that changes nothing is not stored. Errors: NotLeader, Invalid,
// Unauthorized when the secret is not the one that the node first registered with.
func (c *Controller) Register(ctx context.Context, node *drover.Node) (exchange.Registration, error) {
	if node == nil || node.ID == "" || node.SecretID == "" {
		return exchange.Registration{}, drover.Errorf(drover.Invalid, "registering a node: it must have an ID and a SecretID")
	}
	if err := c.leads(); err != nil {
		return exchange.Registration{}, err
	}
	s := c.deps.Store.Snapshot()
	old := s.Node(node.ID)
	if old != nil && old.SecretID != "" && old.SecretID != node.SecretID {
		return exchange.Registration{}, drover.Errorf(drover.Unauthorized, "node %s: the secret is not the one it registered with", node.ID)
	}
	n := c.admitted(node, old)
	if old != nil && unchanged(s, old, n) {
		return c.registration(n.ID, s.Index()), nil
	}
	m := c.maker()
	cmd := &command.RegisterNode{Node: n, Time: m.Now, Evals: m.NodeAs(s, n.ID, n, drover.TriggerNodeUpdate)}
	index, _, err := c.deps.Log.Propose(ctx, cmd)
	if err != nil {
		if drover.CodeOf(err) == drover.Forbidden { // it lost a race against another with the same id
			return exchange.Registration{}, drover.Errorf(drover.Unauthorized, "registering: %w", err)
		}
		return exchange.Registration{}, err
	}
	return c.registration(n.ID, index), nil
}

// admitted returns the node as it is to be stored: ready, with what the server decides.
func (c *Controller) admitted(node, old *drover.Node) *drover.Node {
	n := *node
	n.Status, n.StatusDescription = drover.NodeStatusReady, ""
	if n.NodePool == "" {
		n.NodePool = drover.DefaultNodePool
	}
	if n.SchedulingEligibility == "" {
		n.SchedulingEligibility = drover.NodeEligible
	}
	if old != nil {
		n.CreateIndex, n.ModifyIndex, n.Events, n.LastDrain = old.CreateIndex, old.ModifyIndex, old.Events, old.LastDrain
		n.Drain, n.DrainStrategy, n.SchedulingEligibility = old.Drain, old.DrainStrategy, old.SchedulingEligibility
		n.StatusUpdatedAt = old.StatusUpdatedAt
		n.MergeMeta(n.Meta, old.DynamicMeta)
	}
	n.ComputedClass = feasible.ComputedClass(&n)
	return &n
}

// unchanged spares the log an entry when a node registers again after a restart with the same record, and says nothing new of its volumes.
func unchanged(s *store.Snapshot, old, n *drover.Node) bool {
	stored := *n
	var changes []volumes.Change
	stored.HostVolumes, changes = volumes.Follow(s, n)
	return len(changes) == 0 && reflect.DeepEqual(old, &stored)
}

// registration counts as a heartbeat of the node and says within what time the next is wanted.
func (c *Controller) registration(nodeID string, index uint64) exchange.Registration {
	return exchange.Registration{TTL: c.deps.Leader.Heartbeat(nodeID), Index: index, Age: c.deps.Store.Snapshot().Cluster().Age()}
}

// Heartbeat implements exchange.Controller. A node that was given up is ready again. Errors: NotFound (register first),
// NotLeader.
func (c *Controller) Heartbeat(ctx context.Context, nodeID string) (exchange.Registration, error) {
	if !c.deps.Leader.Leading() {
		return exchange.Registration{}, drover.Errorf(drover.NotLeader, "this server does not lead")
	}
	s := c.deps.Store.Snapshot()
	n := s.Node(nodeID)
	if n == nil {
		return exchange.Registration{}, drover.Errorf(drover.NotFound, "node not found")
	}
	if n.Status == drover.NodeStatusReady {
		return c.registration(nodeID, s.Index()), nil
	}
	m := c.maker()
	back := *n
	back.Status = drover.NodeStatusReady
	index, _, err := c.deps.Log.Propose(ctx, &command.UpdateNodeStatuses{
		Nodes: []command.NodeStatus{{
			NodeID: nodeID, Status: drover.NodeStatusReady,
			Event: &drover.NodeEvent{Message: "Node reregistered by heartbeat", Subsystem: "Cluster", Timestamp: time.Unix(0, m.Now).UTC()},
		}},
		Evals: m.NodeAs(s, nodeID, &back, drover.TriggerNodeUpdate), Time: m.Now,
	})
	if err != nil {
		return exchange.Registration{}, err
	}
	return c.registration(nodeID, index), nil
}
