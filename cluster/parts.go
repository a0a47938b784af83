package cluster

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Missing is the state of a part that a machine does not have.
const Missing = "missing"

// Part is what was found of one part of a machine.
type Part struct {
	Check  string
	State  string // OK, Weak or Missing
	Says   string
	Needed bool // sandboxes cannot run without it
}

// partAttribute is how the attributes of a node begin that say what was found of the parts of its machine. None of them makes it of
// another class.
const partAttribute = "unique.examined."

// PartAttributes are the parts as attributes of a node.
func PartAttributes(parts []Part) map[string]string {
	out := make(map[string]string, len(parts))
	for _, p := range parts {
		value := p.State
		if p.State == Missing && p.Needed {
			value = Broken
		}
		if p.Says != "" {
			value += ": " + p.Says
		}
		out[partAttribute+strings.ReplaceAll(p.Check, " ", "_")] = value
	}
	return out
}

// WithParts are the attributes of a node with those of the parts of its machine in place of what was found before.
func WithParts(attributes, parts map[string]string) map[string]string {
	out := make(map[string]string, len(attributes)+len(parts))
	maps.Copy(out, attributes)
	maps.DeleteFunc(out, func(name, _ string) bool { return strings.HasPrefix(name, partAttribute) })
	maps.Copy(out, parts)
	return out
}

// PartsOf are the findings that attributes of a node tell, by the check. The state of one is OK, Weak, Broken or Missing.
func PartsOf(attributes map[string]string) (list []Finding) {
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if check, ok := strings.CutPrefix(name, partAttribute); ok {
			state, says, _ := strings.Cut(attributes[name], ": ")
			list = append(list, Finding{Check: strings.ReplaceAll(check, "_", " "), State: state, Says: says})
		}
	}
	return list
}

// NodesFinding is what was found of one or several nodes, in the same words.
type NodesFinding struct {
	Check string
	State string // OK, Weak or Broken
	Says  string
	Count int
	Nodes []NodeFound // the first of them by name, ten at most
}

// NodeFound is a node as it is named.
type NodeFound struct {
	ID, Name string
}

// NodesExamination is what the nodes found of themselves, and what servers know of them.
type NodesExamination struct {
	State    string // the worst of the findings: OK, Weak or Broken
	Nodes    int    // how many were looked at
	Silent   int    // how many of them never said what they found: their agents are older
	Findings []NodesFinding
}

// nodesNamed bounds the nodes that a finding names.
const nodesNamed = 10

// Add takes one finding of a node.
func (x *NodesExamination) Add(node NodeFound, f Finding) {
	if f.State == Missing {
		f.State = Weak
	}
	i := slices.IndexFunc(x.Findings, func(o NodesFinding) bool { return o.Check == f.Check && o.State == f.State && o.Says == f.Says })
	if i < 0 {
		i = len(x.Findings)
		x.Findings = append(x.Findings, NodesFinding{Check: f.Check, State: f.State, Says: f.Says})
	}
	x.Findings[i].Count++
	if len(x.Findings[i].Nodes) < nodesNamed {
		x.Findings[i].Nodes = append(x.Findings[i].Nodes, node)
	}
}

// Conclude sorts the findings, the worst and the most frequent first, and judges all.
func (x *NodesExamination) Conclude() {
	rank := func(state string) int { return slices.Index([]string{Broken, Weak, OK}, state) }
	slices.SortStableFunc(x.Findings, func(a, b NodesFinding) int {
		return cmp.Or(cmp.Compare(rank(a.State), rank(b.State)), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Check, b.Check),
			cmp.Compare(a.Says, b.Says))
	})
	x.State = OK
	if len(x.Findings) > 0 {
		x.State = x.Findings[0].State
	}
}
