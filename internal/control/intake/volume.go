package intake

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/scheduler/feasible"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/control/volumes"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/internal/tenant"
	"github.com/drover-project/drover/tenancy"
	"github.com/drover-project/drover/volume"
)

// How long a request about a volume waits for the node. What takes longer goes on.
const (
	volumeMade    = 15 * time.Second
	volumeDeleted = time.Minute
)

// CreateHostVolume has a node make a volume, or changes what is asked of one that there is. It returns the volume as it is once the
// node has made it; one that takes long is pending still. What the node cannot make is forgotten. Errors: Invalid, NotFound, Conflict,
// also where no node will do; Internal with the node's reason.
func (in *Intake) CreateHostVolume(ctx context.Context, v *volume.HostVolume) (*volume.HostVolume, drover.Outcome, error) {
	if v == nil {
		return nil, drover.Outcome{}, drover.Errorf(drover.Invalid, "missing volume")
	}
	asked := *v
	asked.Registered, asked.HostPath, asked.CapacityBytes = false, "", 0
	return in.wantVolume(ctx, &asked)
}

// RegisterHostVolume tells of a folder that a node has, which becomes a volume. It is as CreateHostVolume otherwise.
func (in *Intake) RegisterHostVolume(ctx context.Context, v *volume.HostVolume) (*volume.HostVolume, drover.Outcome, error) {
	if v == nil {
		return nil, drover.Outcome{}, drover.Errorf(drover.Invalid, "missing volume")
	}
	asked := *v
	asked.Registered = true
	return in.wantVolume(ctx, &asked)
}

func (in *Intake) wantVolume(ctx context.Context, v *volume.HostVolume) (*volume.HostVolume, drover.Outcome, error) {
	v.Complete()
	if v.ID != "" && !id.Valid(v.ID) {
		return nil, drover.Outcome{}, drover.Errorf(drover.Invalid, "ID: must be a UUID, got %q", v.ID)
	}
	if err := v.Validate(); err != nil {
		return nil, drover.Outcome{}, err
	}
	s := in.deps.Store.Snapshot()
	if err := in.placeVolume(s, v); err != nil {
		return nil, drover.Outcome{}, err
	}
	if v.ID == "" {
		v.ID = in.deps.IDs.New()
	}
	fresh := s.HostVolume(v.ID) == nil
	o, err := in.propose(ctx, &command.UpsertHostVolume{Volume: v, Time: in.now().UnixNano()})
	if err != nil {
		return nil, o, err
	}
	now := in.awaitVolume(ctx, v.ID, o.Index, volumeMade)
	switch {
	case now == nil:
		return nil, o, drover.Errorf(drover.Conflict, "volume %s was deleted meanwhile", v.ID)
	case now.Done != o.Index || now.StateDescription == "":
		return now, o, nil
	}
	err = drover.Errorf(drover.Internal, "node %s could not provide volume %q: %s", now.NodeID, now.Name, now.StateDescription)
	if fresh {
		_, undone := in.propose(ctx, &command.DeleteHostVolume{Namespace: v.Namespace, ID: v.ID, Force: true, Time: in.now().UnixNano()})
		if undone != nil {
			err = drover.Errorf(drover.Internal, "%w; the volume is still listed: %w", err, undone)
		}
	}
	return nil, o, err
}

// awaitVolume waits for the node's word about the request with the index. It returns the volume as it is then, nil if there is none.
func (in *Intake) awaitVolume(ctx context.Context, volume string, request uint64, most time.Duration) *volume.HostVolume {
	for ends := in.now().Add(most); ; {
		changed := in.deps.Store.Watch(tables.HostVolumes, volume)
		v := in.deps.Store.Snapshot().HostVolume(volume)
		left := ends.Sub(in.now())
		if v == nil || v.Wanted != request || v.Done == request || left <= 0 || !clock.Await(ctx, in.deps.Clock, left, changed) {
			return v
		}
	}
}

// DeleteHostVolume has the node delete a volume and all that is in it, and waits until it has. A folder that was only registered stays.
// With force the volume is forgotten, whatever the node does. Errors: NotFound, Conflict while allocations mount it or the
// node is down, Unavailable if it takes long, Internal with the node's reason.
func (in *Intake) DeleteHostVolume(ctx context.Context, namespace, volume string, force bool) (drover.Outcome, error) {
	v := in.deps.Store.Snapshot().HostVolume(volume)
	if v == nil || v.Namespace != namespace {
		return drover.Outcome{}, volumes.NotFound(volume)
	}
	if n, err := in.node(v.NodeID); !force && err == nil && n.Status != drover.NodeStatusReady {
		return drover.Outcome{}, drover.Errorf(drover.Conflict,
			"node %s is %s: it can delete volume %s when it is back; with force the volume is forgotten and its data stays", n.ID, n.Status, volume)
	}
	o, err := in.propose(ctx, &command.DeleteHostVolume{Namespace: namespace, ID: volume, Force: force, Time: in.now().UnixNano()})
	if err != nil {
		return o, err
	}
	now := in.awaitVolume(ctx, volume, o.Index, volumeDeleted)
	switch {
	case now == nil || now.Wanted != o.Index:
		return o, nil
	case now.Done != o.Index:
		return o, drover.Errorf(drover.Unavailable, "node %s has not deleted volume %s yet: it goes on", now.NodeID, volume)
	}
	return o, drover.Errorf(drover.Internal, "node %s could not delete volume %s: %s", now.NodeID, volume, now.StateDescription)
}

// DeleteVolumeClaim forgets which volume a group's allocation has: what replaces it goes where there is one of the name. Errors: NotFound.
func (in *Intake) DeleteVolumeClaim(ctx context.Context, namespace, claim string) (drover.Outcome, error) {
	return in.propose(ctx, &command.DeleteVolumeClaim{Namespace: namespace, ID: claim, Time: in.now().UnixNano()})
}

// placeVolume chooses the node of a volume that names none, and checks that of one that does. Errors: Invalid, NotFound, Conflict.
func (in *Intake) placeVolume(s *store.Snapshot, v *volume.HostVolume) error {
	ns := s.Namespace(v.Namespace)
	if ns == nil {
		return drover.Errorf(drover.NotFound, "nonexistent namespace %q", v.Namespace)
	}
	if old := s.HostVolume(v.ID); old != nil { // it stays where it is
		if old.Namespace != v.Namespace {
			return volumes.NotFound(v.ID)
		}
		v.NodeID, v.NodePool = cmp.Or(v.NodeID, old.NodeID), cmp.Or(v.NodePool, old.NodePool)
		return nil
	}
	if v.ID != "" { // of one that is forgotten, whose data its node still has: it was perhaps another namespace's
		return volumes.NotFound(v.ID)
	}
	if v.NodePool != "" && s.NodePool(v.NodePool) == nil {
		return drover.Errorf(drover.Invalid, "NodePool: nonexistent node pool %q", v.NodePool)
	}
	m, filtered := feasible.NewMatcher(), map[string]int{}
	if v.NodeID != "" {
		n, err := in.node(v.NodeID)
		if err != nil {
			return err
		}
		if why := unfit(s, m, ns, v, n); why != "" {
			return drover.Errorf(drover.Invalid, "volume %q cannot be on node %s: %s", v.Name, n.ID, why)
		}
		v.NodePool = n.NodePool
		return nil
	}
	var best *drover.Node
	least := 0
	for n := range s.Nodes("") {
		if why := unfit(s, m, ns, v, n); why != "" {
			filtered[why]++
			continue
		}
		has := 0
		for range s.HostVolumesOn(n.ID) {
			has++
		}
		if best == nil || has < least {
			best, least = n, has
		}
	}
	if best == nil {
		return drover.Errorf(drover.Conflict, "no node will do for volume %q: %s", v.Name, counted(filtered))
	}
	v.NodeID, v.NodePool = best.ID, best.NodePool
	return nil
}

// unfit says why a node cannot have the volume; "" if it can.
func unfit(s *store.Snapshot, m *feasible.Matcher, ns *tenancy.Namespace, v *volume.HostVolume, n *drover.Node) string {
	plugin := "plugins.host_volume." + v.PluginID
	switch {
	case v.NodePool != "" && v.NodePool != drover.AllNodePool && n.NodePool != v.NodePool:
		return fmt.Sprintf("not in node pool %q", v.NodePool)
	case !tenant.AllowsPool(ns, n.NodePool):
		return fmt.Sprintf("namespace %q may not use its node pool", ns.Name)
	case n.Status != drover.NodeStatusReady || n.SchedulingEligibility != drover.NodeEligible || n.Drain:
		return "not ready and eligible"
	case !v.Registered && n.Attributes[plugin+".version"] == "":
		if why := n.Attributes[plugin+".missing"]; why != "" {
			return fmt.Sprintf("host volume plugin %q cannot be used: %s", v.PluginID, why)
		}
		return fmt.Sprintf("no host volume plugin %q", v.PluginID)
	case volumes.Named(s, n, v.Name):
		return fmt.Sprintf("has a volume %q already", v.Name)
	}
	for _, c := range v.Constraints {
		if !m.Node(n, c.LTarget, c.Operand, c.RTarget) {
			return strings.Join([]string{"constraint", c.LTarget, c.Operand, c.RTarget}, " ")
		}
	}
	return ""
}

// counted says how many nodes each reason excludes.
func counted(filtered map[string]int) string {
	if len(filtered) == 0 {
		return "there are no nodes"
	}
	parts := make([]string, 0, len(filtered))
	for _, why := range slices.Sorted(maps.Keys(filtered)) {
		parts = append(parts, fmt.Sprintf("%d × %s", filtered[why], why))
	}
	return strings.Join(parts, "; ")
}
