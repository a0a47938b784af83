package planner

import (
	"slices"

	"github.com/drover-project/drover"
)

// writable reports whether the new ones of list can write the host volumes that they want: another plan may have placed a writer since the
// scheduler looked. What is there is there.
func (v *view) writable(node *drover.Node, list []*drover.Allocation) bool {
	type writer struct {
		namespace string
		drover.VolumeWrite
	}
	var all []writer
	blocked := func(a *drover.Allocation, w drover.VolumeWrite) bool {
		return slices.ContainsFunc(all, func(x writer) bool { return x.namespace == a.Namespace && w.Contends(x.VolumeWrite) })
	}
	read, listed := false, map[string]bool{}
	for _, a := range list {
		listed[a.ID] = true
	}
	for _, a := range list {
		if v.Allocation(a.ID) != nil {
			continue
		}
		var own []writer
		for _, w := range a.VolumeWrites() {
			if have := node.HostVolumes[w.Name]; have == nil || have.ID == "" { // those of the node's configuration take all writers
				continue
			}
			if !read {
				for x := range v.live(node.ID) {
					if !listed[x.ID] || v.Allocation(x.ID) != nil {
						for _, w := range x.VolumeWrites() {
							all = append(all, writer{x.Namespace, w})
						}
					}
				}
				read = true
			}
			if blocked(a, w) {
				return false
			}
			own = append(own, writer{a.Namespace, w})
		}
		all = append(all, own...)
	}
	return true
}
