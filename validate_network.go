package drover

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// validateNetworks checks the networks of a group or a task. Labels and static ports are unique among them. A static
// port may be shared only if it says so, as tasks that bind with SO_REUSEPORT do.
func validateNetworks(v *report, at string, networks []*NetworkResource) {
	v.Check(len(networks) <= 1, at+".Networks", "only one network a group, got %d", len(networks))
	labels, statics := map[string]bool{}, map[int]string{}
	for i, n := range networks {
		if n == nil {
			v.Addf(fmt.Sprintf("%s.Networks[%d]", at, i), "must not be null")
			continue
		}
		cni := strings.HasPrefix(n.Mode, "cni/")
		v.Check(!cni, at+".Networks.Mode", "%s is not supported: Drover has no CNI: use mode bridge", n.Mode)
		v.Check(cni || n.Mode == "host" || n.Mode == "bridge" || n.Mode == "none", at+".Networks.Mode",
			"must be host, bridge or none, got %q", n.Mode)
		for _, p := range append(append([]Port{}, n.ReservedPorts...), n.DynamicPorts...) {
			where := fmt.Sprintf("%s.port[%s]", at, p.Label)
			v.Check(p.Label != "", at+".Networks", "a port has no label")
			v.Check(!labels[p.Label], where, "is defined twice")
			labels[p.Label] = true
			v.Check(p.Value >= 0 && p.Value <= 65535, where+".Value", "must be from 1 to 65535, got %d", p.Value)
			v.Check(p.To >= -1 && p.To <= 65535, where+".To", "must be from -1 to 65535, got %d", p.To)
		}
		for _, p := range n.ReservedPorts {
			where := fmt.Sprintf("%s.port[%s]", at, p.Label)
			v.Check(p.Value > 0, where+".Value", "a static port must be from 1 to 65535, got %d", p.Value)
			if other, taken := statics[p.Value]; taken && !p.IgnoreCollision {
				v.Addf(where, "static port %d is used by %q already", p.Value, other)
			}
			statics[p.Value] = p.Label
		}
	}
}

// KnowsPort reports whether a service of the group can name the port: by a label, a number, or a reference.
func (g *TaskGroup) KnowsPort(port string) bool {
	_, err := strconv.Atoi(port)
	return port == "" || err == nil || strings.Contains(port, "${") || g.ports()[port]
}

// ports returns the labels of all ports of the group and its tasks.
func (g *TaskGroup) ports() map[string]bool {
	labels := map[string]bool{}
	add := func(networks []*NetworkResource) {
		for _, n := range networks {
			if n == nil {
				continue
			}
			for _, p := range slices.Concat(n.ReservedPorts, n.DynamicPorts) {
				labels[p.Label] = true
			}
		}
	}
	add(g.Networks)
	for _, t := range g.Tasks {
		if t != nil && t.Resources != nil {
			add(t.Resources.Networks)
		}
	}
	return labels
}
