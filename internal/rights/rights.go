package rights

import (
	"strings"

	"github.com/drover-project/drover/internal/policy"
)

// AnyNamespace asks whether something is allowed in a namespace, whichever: a list over all of them is then filtered object by object.
const AnyNamespace = "*"

// Rights is what somebody may do. It is never changed; nil allows nothing. All methods are for any number of goroutines.
type Rights struct {
	management bool
	namespaces *table[policy.Capability]
	pools      *table[policy.PoolCapability]
	volumes    *table[policy.VolumeCapability]
	variables  *variables
	parts      [policy.Parts]policy.Level
	operator   policy.Set[policy.OperatorCapability]
	some       policy.Set[policy.Capability] // what is allowed in some namespace
	own        *Own                          // of a workload; nil for others
}

// Management returns the rights to do everything.
func Management() *Rights { return &Rights{management: true} }

// Compile returns what the policies allow together. A denial of one takes away what another one gives at the same label; between labels the
// most specific one decides alone.
func Compile(policies ...*policy.Rules) *Rights {
	r := &Rights{}
	namespaces := map[string]policy.Set[policy.Capability]{}
	pools := map[string]policy.Set[policy.PoolCapability]{}
	volumes := map[string]policy.Set[policy.VolumeCapability]{}
	paths := map[string]map[string]policy.Set[policy.VariableCapability]{}
	for _, p := range policies {
		for label, ns := range p.Namespaces {
			namespaces[label] = namespaces[label].With(ns.Capabilities)
			for path, set := range ns.Variables {
				if paths[label] == nil {
					paths[label] = map[string]policy.Set[policy.VariableCapability]{}
				}
				paths[label][path] = paths[label][path].With(set)
			}
		}
		for label, set := range p.NodePools {
			pools[label] = pools[label].With(set)
		}
		for label, set := range p.HostVolumes {
			volumes[label] = volumes[label].With(set)
		}
		for part, level := range p.Parts {
			r.parts[part] = max(r.parts[part], level)
		}
		r.operator = r.operator.With(p.Operator)
	}
	for _, set := range namespaces {
		if !set.Denies() {
			r.some = r.some.With(set)
		}
	}
	r.namespaces, r.pools, r.volumes, r.variables = newTable(namespaces), newTable(pools), newTable(volumes), newVariables(paths)
	return r
}

// Management reports whether everything is allowed.
func (r *Rights) Management() bool { return r != nil && r.management }

// Namespace reports whether the capability is given in the namespace, or in some one for AnyNamespace.
func (r *Rights) Namespace(namespace string, c policy.Capability) bool {
	switch {
	case r == nil:
		return false
	case r.management:
		return true
	case r.own.services(namespace, c):
		return true
	case namespace == AnyNamespace:
		return r.some.Has(c)
	}
	return r.namespaces.find(namespace).Has(c)
}

// SeesNamespace reports whether anything is given in the namespace: then its existence may be known.
func (r *Rights) SeesNamespace(namespace string) bool {
	switch {
	case r == nil:
		return false
	case r.management:
		return true
	case r.own != nil && namespace == r.own.Namespace:
		return true
	case namespace == AnyNamespace:
		return r.some.Allows()
	}
	return r.namespaces.find(namespace).Allows()
}

// Variable reports whether the capability is given for the variable. Where the namespace's own rule denies, nothing is: a denied namespace
// keeps its variables to itself, whatever another rule says of all paths.
func (r *Rights) Variable(namespace, path string, c policy.VariableCapability) bool {
	switch {
	case r == nil:
		return false
	case r.management:
		return true
	case r.own.variable(namespace, path, c):
		return true
	case r.namespaces.find(namespace).Denies():
		return false
	}
	return r.variables.find(namespace, path).Has(c)
}

// AnyVariable reports whether the capability is given for some path of the namespace, or of some namespace for AnyNamespace.
func (r *Rights) AnyVariable(namespace string, c policy.VariableCapability) bool {
	switch {
	case r == nil:
		return false
	case r.management:
		return true
	case r.own.some(namespace, c):
		return true
	case namespace == AnyNamespace:
		return r.variables.anywhere(c)
	case r.namespaces.find(namespace).Denies():
		return false
	}
	return r.variables.any(namespace, c)
}

// NodePool reports whether the capability is given for the node pool.
func (r *Rights) NodePool(name string, c policy.PoolCapability) bool {
	return r != nil && (r.management || r.pools.find(name).Has(c))
}

// HostVolume reports whether the capability is given for the host volume.
func (r *Rights) HostVolume(name string, c policy.VolumeCapability) bool {
	return r != nil && (r.management || r.volumes.find(name).Has(c))
}

// Part reports whether the level is given for a part of the cluster.
func (r *Rights) Part(p policy.Part, need policy.Level) bool {
	return r != nil && (r.management || r.parts[p].Allows(need))
}

// Operator reports whether the capability is given.
func (r *Rights) Operator(c policy.OperatorCapability) bool {
	return r != nil && (r.management || r.operator.Has(c))
}

// variables are the rules of variables' paths, by the labels of namespaces.
type variables struct {
	exact map[string]*table[policy.VariableCapability] // by namespaces' names
	globs []paths                                      // by globs of namespaces
}

// paths are the rules of paths of one glob of namespaces.
type paths struct {
	glob  string
	weigh int
	table *table[policy.VariableCapability]
}

func newVariables(labels map[string]map[string]policy.Set[policy.VariableCapability]) *variables {
	v := &variables{exact: map[string]*table[policy.VariableCapability]{}}
	for label, rules := range labels {
		if t := newTable(rules); strings.Contains(label, "*") {
			v.globs = append(v.globs, paths{label, len(label) - strings.Count(label, "*"), t})
		} else {
			v.exact[label] = t
		}
	}
	return v
}

// find returns the capabilities of the rule that holds for the path: the one that names both, else that with the most characters of
// namespace and path together beside its stars.
func (v *variables) find(namespace, path string) policy.Set[policy.VariableCapability] {
	var best choice
	if t := v.exact[namespace]; t != nil {
		if set, ok := t.exact[path]; ok {
			return set
		}
		best.offer(namespace, len(namespace), t.glob(path))
	}
	for i := range v.globs {
		g := &v.globs[i]
		if !matches(g.glob, namespace) {
			continue
		}
		if set, ok := g.table.exact[path]; ok {
			best.offer(g.glob, g.weigh, &pattern[policy.VariableCapability]{path, len(path), set})
		}
		best.offer(g.glob, g.weigh, g.table.glob(path))
	}
	return best.set
}

// choice is the best rule of a path found so far.
type choice struct {
	found     bool
	namespace string
	path      string
	weigh     int
	set       policy.Set[policy.VariableCapability]
}

// offer takes a rule if it is better: more characters, then a denial, then the order of bytes.
func (c *choice) offer(namespace string, weigh int, p *pattern[policy.VariableCapability]) {
	if p == nil {
		return
	}
	weigh += p.weigh
	better := !c.found
	if c.found {
		switch {
		case weigh != c.weigh:
			better = weigh > c.weigh
		case p.set.Denies() != c.set.Denies():
			better = p.set.Denies()
		case namespace != c.namespace:
			better = namespace < c.namespace
		default:
			better = p.glob < c.path
		}
	}
	if better {
		*c = choice{true, namespace, p.glob, weigh, p.set}
	}
}

// any reports whether a rule of the namespace has the capability, for some path.
func (v *variables) any(namespace string, c policy.VariableCapability) bool {
	if v.exact[namespace].any(c) {
		return true
	}
	for i := range v.globs {
		if g := &v.globs[i]; matches(g.glob, namespace) && g.table.any(c) {
			return true
		}
	}
	return false
}

// anywhere is any of all namespaces.
func (v *variables) anywhere(c policy.VariableCapability) bool {
	for _, t := range v.exact {
		if t.any(c) {
			return true
		}
	}
	for i := range v.globs {
		if v.globs[i].table.any(c) {
			return true
		}
	}
	return false
}
