package insight

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
)

// Nodes are a snapshot's.
type Nodes interface {
	Nodes(prefix string) iter.Seq[*drover.Node]
}

// ExamineNodes says what is well and wrong with nodes: all, or those with an id, a prefix of it or a name. Of those that are named also
// what is well is told, of all only what is not.
func ExamineNodes(s Nodes, named string) cluster.NodesExamination {
	x := cluster.NodesExamination{Findings: []cluster.NodesFinding{}}
	sorted := slices.SortedFunc(s.Nodes(named), func(a, b *drover.Node) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	if named != "" && len(sorted) == 0 {
		for n := range s.Nodes("") {
			if n.Name == named {
				sorted = append(sorted, n)
			}
		}
	}
	for _, n := range sorted {
		x.Nodes++
		parts := cluster.PartsOf(n.Attributes)
		if len(parts) == 0 {
			x.Silent++
		}
		for _, f := range slices.Concat(away(n), parts, drivers(n)) {
			if named != "" || f.State != cluster.OK {
				x.Add(cluster.NodeFound{ID: n.ID, Name: n.Name}, f)
			}
		}
	}
	x.Conclude()
	return x
}

// away is what is wrong with the node as a whole.
func away(n *drover.Node) (list []cluster.Finding) {
	switch n.Status {
	case drover.NodeStatusDown:
		list = append(list, cluster.Finding{Check: "answers", State: cluster.Broken, Says: "It is down."})
	case drover.NodeStatusDisconnected:
		list = append(list, cluster.Finding{
			Check: "answers", State: cluster.Broken, Says: "It is disconnected, and its work may still run there.",
		})
	case drover.NodeStatusReady:
		list = append(list, cluster.Finding{Check: "answers", State: cluster.OK, Says: "It answers."})
	}
	if where, ok := strings.CutPrefix(n.Attributes["drover.secrets"], "disk: "); ok {
		list = append(list, cluster.Finding{Check: "secrets", State: cluster.Weak, Says: "Tasks' secrets are on the disk: " + where})
	}
	return list
}

// drivers are those that the node has, and the sandbox in any case: nobody misses docker where it was never installed.
func drivers(n *drover.Node) (list []cluster.Finding) {
	for _, name := range slices.Sorted(maps.Keys(n.Drivers)) {
		d := n.Drivers[name]
		if d == nil || !d.Detected && name != "sandbox" {
			continue
		}
		f := cluster.Finding{Check: "driver " + name, State: cluster.OK, Says: d.HealthDescription}
		weaker := d.Attributes["driver."+name+".weaker"]
		switch {
		case !d.Detected || !d.Healthy:
			f.State, f.Says = cluster.Broken, cmp.Or(d.HealthDescription, "it does not say why")
		case weaker != "":
			f.State, f.Says = cluster.Weak, weaker
		}
		list = append(list, f)
	}
	return list
}
