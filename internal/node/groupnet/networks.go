package groupnet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"sync"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/cni"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/sandbox/bridge"
	"github.com/drover-project/drover/network"
)

// Holder has containers that hold a network namespace; the docker driver is one. They are known by their name.
type Holder interface {
	// HoldNetwork starts one that has only a loopback, in the place of any that has the name and does not run.
	HoldNetwork(ctx context.Context, name, hostname string) (pid int, err error)
	// NetworkHeld returns the process of one that runs; 0 if there is none.
	NetworkHeld(ctx context.Context, name string) (pid int, err error)
	// KeepNetwork says that one of this name is still wanted: after a restart of the agent.
	KeepNetwork(name string)
	// LetGoNetwork removes it. Idempotent.
	LetGoNetwork(ctx context.Context, name string) error
}

// Config of Networks.
type Config struct {
	Dir    string // for the records and the mounts; made when needed
	Bridge *bridge.Network
	CNI    *cni.Networks // those of the machine's administrator
	Holder Holder        // nil: no docker
	Clock  clock.Clock
	Log    *slog.Logger
}

// Networks are the shared namespaces of a node's allocations. Its methods may be called at once.
type Networks struct {
	cfg Config

	mu     sync.Mutex
	allocs map[string]*shared // guarded by mu
}

// shared is one allocation's namespace.
type shared struct {
	mu      sync.Mutex // held while it is made, or given up
	record  record     // guarded by mu
	made    bool       // guarded by mu
	gone    bool       // guarded by mu: given up
	address netip.Addr // on the bridge; invalid: on none. Guarded by mu
	forward *bridge.Forwarder
	// enclosed are the surroundings that the rules of egress in a namespace of CNI were made for; "" = there are none yet. Guarded by mu
	enclosed string

	status *network.Status // guarded by Networks.mu
}

// New returns no namespaces. Restore finds those of an earlier agent.
func New(cfg Config) *Networks { return &Networks{cfg: cfg, allocs: map[string]*shared{}} }

// containerName of the container that holds an allocation's namespace.
func containerName(allocID string) string { return "drover-network-" + allocID }

// Join returns the namespace that the task shares with the others of its allocation, made with the first of them; nil if
// the task has a network of its own. Errors: Unavailable, Exhausted. Conflict when a docker task's part of the namespace went
// with its daemon while other tasks still are in the old one. Invalid for a driver whose tasks cannot be in the group's network.
func (n *Networks) Join(ctx context.Context, alloc *drover.Allocation, group *drover.TaskGroup, task *drover.Task) (*driver.NetNS, error) {
	if !shares(group) || ownNetwork(task) {
		return nil, outside(group, task) // mostly a valid answer
	}
	s := n.shared(alloc.ID)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return nil, drover.Errorf(drover.Gone, "allocation %s has ended", alloc.ID)
	}
	before := s.made
	if err := n.ensure(ctx, s, alloc, group); err != nil {
		return nil, fmt.Errorf("network of the group: %w", err)
	}
	ns := &driver.NetNS{Path: n.path(alloc.ID), Status: n.Status(alloc.ID)}
	if !before && s.record.CNI != nil && s.record.CNI.Unmapped() {
		ns.Note = fmt.Sprintf("The CNI network %q maps no ports: the group's are reached at the allocation's address only", cniName(group))
	}
	if s.record.Container {
		ns.Container = containerName(alloc.ID)
	}
	return ns, nil
}

// shared returns what is known of the allocation's network, new if it is nothing. Its own lock lets one allocation be
// slow without keeping the others.
func (n *Networks) shared(allocID string) *shared {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.allocs[allocID]
	if s == nil {
		s = &shared{}
		n.allocs[allocID] = s
	}
	return s
}

// Status is an allocation's address; nil if it shares none.
func (n *Networks) Status(allocID string) *network.Status {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s := n.allocs[allocID]; s != nil {
		return s.status
	}
	return nil
}

// show makes the address visible to Status, which must not wait for s.mu: reports of all allocations ask it.
func (n *Networks) show(s *shared) {
	var status *network.Status
	if s.record.CNI != nil {
		status = s.record.CNI.Status
	} else {
		status = n.cfg.Bridge.Status(s.address)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	s.status = status
}

// Leave gives up the namespace of an allocation whose tasks have all ended. Idempotent.
func (n *Networks) Leave(ctx context.Context, allocID string) error {
	n.mu.Lock()
	s := n.allocs[allocID]
	n.mu.Unlock()
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	s.forward.Close()
	if err := n.unmake(ctx, s, allocID); err != nil {
		return fmt.Errorf("giving up the network of allocation %s: %w", allocID, err)
	}
	n.mu.Lock()
	delete(n.allocs, allocID)
	n.mu.Unlock()
	return nil
}

// unmake removes all but the address, and the record last, so that a later agent tries again what failed.
func (n *Networks) unmake(ctx context.Context, s *shared, allocID string) error {
	errs := []error{n.detach(ctx, s, allocID), bridge.DropNamespace(n.path(allocID))}
	if s.record.Container && n.cfg.Holder != nil {
		errs = append(errs, n.cfg.Holder.LetGoNetwork(ctx, containerName(allocID)))
	}
	if s.address.IsValid() {
		errs = append(errs, n.cfg.Bridge.Disconnect(ctx, s.address))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	s.made, s.enclosed, s.address, s.record = false, "", netip.Addr{}, record{}
	if err := os.Remove(n.path(allocID) + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Restore takes over the namespaces that an earlier agent made: their addresses are taken, and their ports lead to them
// again. Call it once, before Join. Errors are those of single allocations; the others are restored.
func (n *Networks) Restore() error {
	records, err := n.read()
	errs := []error{err}
	for allocID, r := range records {
		if err := n.restore(n.shared(allocID), allocID, r); err != nil {
			errs = append(errs, fmt.Errorf("allocation %s: %w", allocID, err))
		}
	}
	return errors.Join(errs...)
}

// restore takes over one of them. What had only begun was no namespace of any task yet: it is undone before the next one is made, or
// by the sweep.
func (n *Networks) restore(s *shared, allocID string, r record) (err error) {
	s.record = r
	if r.CNI == nil {
		if s.address, err = netip.ParseAddr(r.Address); err != nil {
			return err
		}
		n.cfg.Bridge.Hold(s.address, r.IPv6)
	}
	if r.Container && n.cfg.Holder != nil {
		n.cfg.Holder.KeepNetwork(containerName(allocID))
	}
	s.made = bridge.HasNamespace(n.path(allocID)) && !r.Pending && (r.CNI == nil || r.CNI.Status != nil)
	n.show(s)
	if s.made {
		err = n.enclose(s, allocID) // an agent of before may have set none
	}
	if r.CNI == nil {
		s.forward, err = n.cfg.Bridge.Forward(s.address, r.Ports)
	}
	return err
}

// Sweep gives up the namespaces of allocations that keep does not want.
func (n *Networks) Sweep(ctx context.Context, keep func(allocID string) bool) error {
	n.mu.Lock()
	var ids []string
	for allocID := range n.allocs {
		ids = append(ids, allocID)
	}
	n.mu.Unlock()
	var errs []error
	for _, allocID := range ids {
		if !keep(allocID) {
			errs = append(errs, n.Leave(ctx, allocID))
		}
	}
	return errors.Join(errs...)
}

// Close ends the forwarding of ports. Namespaces of allocations that outlive the agent stay.
func (n *Networks) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.allocs {
		s.mu.Lock()
		s.forward.Close()
		s.mu.Unlock()
	}
	if left, err := filepath.Glob(filepath.Join(n.cfg.Dir, "*")); err == nil && len(left) == 0 {
		_ = os.Remove(n.cfg.Dir)
	}
	if n.cfg.CNI == nil {
		return nil
	}
	return n.cfg.CNI.Close()
}
