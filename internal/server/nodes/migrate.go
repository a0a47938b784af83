package nodes

import (
	"context"
	"io"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/tables"
)

// lookAgain is how long an allocation's end is waited for before it is looked for again.
const lookAgain = time.Minute

// Fetch implements exchange.Migrations: a node gets the data of what its own allocation replaces, and of nothing else. Any server does it.
func (f *Front) Fetch(ctx context.Context, nodeID, allocID string, w io.Writer) error {
	if f.deps.Workloads == nil {
		return drover.Errorf(drover.NotImplemented, "this server hands on no data")
	}
	if f.deps.Servers.Clustered() { // the node may have heard of its allocation from another server
		if err := f.Current(ctx); err != nil {
			return err
		}
	}
	previous, err := f.ended(ctx, nodeID, allocID)
	if err != nil {
		return err
	}
	if n := f.deps.Store.Snapshot().Node(previous.NodeID); n == nil || n.Status == drover.NodeStatusDown {
		return drover.Errorf(drover.NotFound, "the node of allocation %s is gone or down", previous.ID)
	}
	err = f.hand(ctx, previous, w)
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	// Another server would have it from the same node: the one that asks is not to leave this one for that, so it is never Unavailable.
	code := drover.Internal
	if c := drover.CodeOf(err); c == drover.NotFound || c == drover.Forbidden || c == drover.NotImplemented {
		code = drover.NotFound // there will be none
	}
	return drover.Errorf(code, "the data of allocation %s cannot be had from its node: %w", previous.ID, err)
}

// hand writes the allocation's data as its node gives it.
func (f *Front) hand(ctx context.Context, a *drover.Allocation, w io.Writer) error {
	from, err := f.deps.Workloads(a.NodeID)
	if err != nil {
		return err
	}
	data, err := from.SnapshotFolder(ctx, a.ID)
	if err != nil {
		return err
	}
	defer data.Close()
	_, err = io.Copy(w, data)
	return err
}

// ended returns the allocation whose data the node may have, once it has ended. One whose node is disconnected is not waited for: what
// replaces it is there to run meanwhile. Errors: those of predecessor; NotFound for such a one.
func (f *Front) ended(ctx context.Context, nodeID, allocID string) (*drover.Allocation, error) {
	previous, err := predecessor(f.deps.Store.Snapshot(), nodeID, allocID)
	for err == nil && !previous.ClientTerminal() {
		changed := f.deps.Store.Watch(tables.Allocs, previous.ID)
		if previous, err = predecessor(f.deps.Store.Snapshot(), nodeID, allocID); err != nil || previous.ClientTerminal() {
			break
		}
		if previous.ClientStatus == drover.AllocClientUnknown {
			return nil, drover.Errorf(drover.NotFound, "allocation %s: the node of %s, which it replaces, is disconnected", allocID, previous.ID)
		}
		if !clock.Await(ctx, f.deps.Clock, lookAgain, changed) && ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return previous, err
}

// predecessor returns the allocation whose data the node may have. Errors: NotFound, Forbidden.
func predecessor(s *store.Snapshot, nodeID, allocID string) (*drover.Allocation, error) {
	a := s.Allocation(allocID)
	if a == nil || a.NodeID != nodeID || a.Terminal() || a.Job == nil {
		return nil, drover.Errorf(drover.Forbidden, "allocation %q is not one that node %s is to run", allocID, nodeID)
	}
	if g := a.Job.Group(a.TaskGroup); g == nil || g.EphemeralDisk == nil || !g.EphemeralDisk.Migrate {
		return nil, drover.Errorf(drover.Forbidden, "allocation %s: its group does not migrate its disk", allocID)
	}
	previous := s.Allocation(a.PreviousAllocation)
	if previous == nil {
		return nil, drover.Errorf(drover.NotFound, "allocation %s: what it replaces is forgotten", allocID)
	}
	if previous.Namespace != a.Namespace || previous.JobID != a.JobID || previous.TaskGroup != a.TaskGroup {
		return nil, drover.Errorf(drover.Forbidden, "allocation %s replaces one of another group", allocID)
	}
	return previous, nil
}

var _ exchange.Migrations = (*Front)(nil)
