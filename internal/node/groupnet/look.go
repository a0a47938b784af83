package groupnet

import (
	"context"
	"maps"
	"net/netip"

	"github.com/drover-project/drover/internal/node/cni"
)

// Look finds the networks of CNI that groups can have, and the plugins of those. What it returns must not be changed. It also looks
// whether the bridge is as it should be, and whether the rules in namespaces must be renewed, and so is to be called now and then.
func (n *Networks) Look(ctx context.Context) cni.Found {
	n.cfg.Bridge.Mend()
	if n.cfg.CNI == nil {
		return cni.Found{}
	}
	n.renew()
	found := n.cfg.CNI.Look(ctx)
	if why := n.cfg.Bridge.Fence().CannotEnclose(); why != "" {
		found.Networks = maps.Clone(found.Networks)
		for name, missing := range found.Networks {
			if missing == "" {
				found.Networks[name] = why
			}
		}
	}
	return found
}

// enclose sets the rules of egress in a namespace of CNI, unless they are there. s.mu is held.
func (n *Networks) enclose(s *shared, allocID string) error {
	fence := n.cfg.Bridge.Fence()
	now := fence.Surroundings()
	if s.record.CNI == nil || s.enclosed == now {
		return nil
	}
	var resolvers []netip.Addr
	if status := s.record.CNI.Status; status != nil && status.DNS != nil {
		for _, text := range status.DNS.Servers {
			if a, err := netip.ParseAddr(text); err == nil {
				resolvers = append(resolvers, a)
			}
		}
	}
	if err := fence.Enclose(n.path(allocID), resolvers); err != nil {
		return err
	}
	s.enclosed = now
	return nil
}

// renew sets the rules again in namespaces that have those of other addresses of the machine.
func (n *Networks) renew() {
	n.mu.Lock()
	all := maps.Clone(n.allocs)
	n.mu.Unlock()
	for allocID, s := range all {
		if !s.mu.TryLock() {
			continue // it is just made or given up, or has its turn next time
		}
		if s.made && !s.gone {
			if err := n.enclose(s, allocID); err != nil {
				n.cfg.Log.Error("renewing the rules of a network", "alloc", allocID, "error", err)
			}
		}
		s.mu.Unlock()
	}
}
