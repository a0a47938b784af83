package cluster

import (
	"fmt"
	"slices"
	"strings"
)

// Topology is where a cluster's nodes are, how they are, and how full. It is in columns: the same place of each stands for one node, and
// nodes are ordered by pool, datacenter, class and name.
type Topology struct {
	Index uint64 `json:"index"` // of the state that it shows
	// Layout names which nodes there are and where. Who has a topology of the same layout may have one without the columns that say that.
	Layout string `json:"layout"`

	IDs         []string `json:"ids,omitempty"`
	Names       []string `json:"names,omitempty"`
	Pools       []string `json:"pools,omitempty"`       // each once
	Datacenters []string `json:"datacenters,omitempty"` // each once
	Classes     []string `json:"classes,omitempty"`     // each once
	Pool        []int    `json:"pool,omitempty"`        // of each node: which of Pools
	Datacenter  []int    `json:"datacenter,omitempty"`  // likewise
	Class       []int    `json:"class,omitempty"`       // likewise

	States      string `json:"states"`      // a letter for each node: one of those below
	CPU         []int  `json:"cpu"`         // what allocations hold, in percent of what they may
	Memory      []int  `json:"memory"`      // likewise
	Allocations []int  `json:"allocations"` // that have not ended
}

// Letters for how a node is.
const (
	NodeReady      = 'r'
	NodeIneligible = 'i' // ready, but takes nothing new
	NodeDraining   = 'd'
	NodeAway       = 'a' // disconnected: what runs there may run on
	NodeGone       = 'x' // down
	NodeBegins     = 'b' // not ready yet
)

// Without returns the topology without the columns of its layout, for who has them.
func (t Topology) Without() Topology {
	return Topology{Index: t.Index, Layout: t.Layout, States: t.States, CPU: t.CPU, Memory: t.Memory, Allocations: t.Allocations}
}

// TopologyGroup is the nodes that have a pool, datacenter or class in common.
type TopologyGroup struct {
	Name                string
	Nodes, Allocations  int
	States              map[byte]int // how many nodes, by the letter
	CPU, Memory         int          // percent: the mean
	MostCPU, MostMemory int          // percent: of the fullest node
}

// Groups are the nodes by "pool", "datacenter" or "class", in the order of the columns. Errors: one that names what can be asked for.
func (t *Topology) Groups(by string) ([]TopologyGroup, error) {
	names, of, err := t.column(by)
	if err != nil {
		return nil, err
	}
	groups := make([]TopologyGroup, len(names))
	for i, name := range names {
		groups[i] = TopologyGroup{Name: name, States: map[byte]int{}}
	}
	for i, group := range of {
		g := &groups[group]
		g.Nodes++
		g.Allocations += t.Allocations[i]
		g.States[t.States[i]]++
		g.CPU, g.Memory = g.CPU+t.CPU[i], g.Memory+t.Memory[i]
		g.MostCPU, g.MostMemory = max(g.MostCPU, t.CPU[i]), max(g.MostMemory, t.Memory[i])
	}
	for i := range groups {
		g := &groups[i]
		g.CPU, g.Memory = g.CPU/g.Nodes, g.Memory/g.Nodes
	}
	return groups, nil
}

// column is what nodes have in common: the names, and of each node which of them.
func (t *Topology) column(by string) (names []string, of []int, err error) {
	switch by {
	case "pool":
		return t.Pools, t.Pool, nil
	case "datacenter":
		return t.Datacenters, t.Datacenter, nil
	case "class":
		return t.Classes, t.Class, nil
	}
	return nil, nil, fmt.Errorf("%q is none of pool, datacenter, class", by)
}

// Find are the places of the nodes whose name, id, pool, datacenter, class or state, as says names it, has each of the words; all of none.
func (t *Topology) Find(words string, says func(letter byte) string) []int {
	wanted := strings.Fields(strings.ToLower(words))
	found := []int{}
	for i := range t.IDs {
		text := ""
		if len(wanted) > 0 {
			text = strings.ToLower(strings.Join([]string{
				t.IDs[i], t.Names[i], t.Pools[t.Pool[i]], t.Datacenters[t.Datacenter[i]], t.Classes[t.Class[i]], says(t.States[i]),
			}, " "))
		}
		if !slices.ContainsFunc(wanted, func(word string) bool { return !strings.Contains(text, word) }) {
			found = append(found, i)
		}
	}
	return found
}
