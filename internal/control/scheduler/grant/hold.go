package grant

import (
	"iter"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
)

// Hold is what allocations hold on a node beside its divisible resources. It is made only for nodes that a group with
// ports, cores, devices or a bound on allocations is about to be placed on.
type Hold struct {
	ports   map[int]bool
	cores   map[uint16]bool
	devices map[string]bool // by id
	allocs  int
}

// NewHold reads the node's reserved ports and its allocations; those that ended are passed over.
func NewHold(n *drover.Node, allocs iter.Seq[*drover.Allocation]) *Hold {
	h := &Hold{ports: map[int]bool{}, cores: map[uint16]bool{}, devices: map[string]bool{}}
	if n.ReservedResources != nil {
		h.reservePorts(n.ReservedResources.Networks.ReservedHostPorts)
	}
	if n.NodeResources != nil {
		for _, network := range n.NodeResources.NodeNetworks {
			for _, a := range network.Addresses {
				h.reservePorts(a.ReservedPorts)
			}
		}
	}
	for a := range allocs {
		if a.HoldsResources() {
			h.Add(a.AllocatedResources)
		}
	}
	return h
}

// Add takes what an allocation holds.
func (h *Hold) Add(r *drover.AllocatedResources) {
	h.allocs++
	if r == nil {
		return
	}
	for _, p := range r.Shared.Ports {
		h.ports[p.Value] = true
	}
	for _, t := range r.Tasks {
		for _, c := range t.Cpu.ReservedCores {
			h.cores[c] = true
		}
		for _, d := range t.Devices {
			for _, id := range d.DeviceIDs {
				h.devices[id] = true
			}
		}
		for _, network := range t.Networks {
			for _, p := range network.ReservedPorts {
				h.ports[p.Value] = true
			}
			for _, p := range network.DynamicPorts {
				h.ports[p.Value] = true
			}
		}
	}
}

// reservePorts takes a list like "22,80,8500-8600"; what cannot be read is passed over.
func (h *Hold) reservePorts(list string) {
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		first, err := strconv.Atoi(from)
		if err != nil {
			continue
		}
		last := first
		if isRange {
			if last, err = strconv.Atoi(to); err != nil {
				continue
			}
		}
		for p := max(first, 0); p <= min(last, 65535); p++ {
			h.ports[p] = true
		}
	}
}
