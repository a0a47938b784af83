package drover

import (
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/network"
)

// KnowsPort reports whether a service of the group can name the port: by a label, a number, or a reference.
func (g *TaskGroup) KnowsPort(port string) bool {
	_, err := strconv.Atoi(port)
	return port == "" || err == nil || strings.Contains(port, "${") || g.ports()[port]
}

// ports returns the labels of all ports of the group and its tasks.
func (g *TaskGroup) ports() map[string]bool {
	labels := map[string]bool{}
	add := func(networks []*network.Resource) {
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
