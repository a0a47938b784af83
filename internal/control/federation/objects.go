package federation

import (
	"iter"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/tenancy"
)

// Objects is what the regions share, as it is at an index of the authoritative region's state.
type Objects struct {
	Index  uint64
	Epoch  string // of the state: indexes of another one say nothing; "" = something is missing, and to be asked for anew
	Region string // whose they are; it decides which limit of a quota holds

	Namespaces Set[*tenancy.Namespace]
	Pools      Set[*drover.NodePool]
	Quotas     Set[*tenancy.QuotaSpec]
	Rules      Set[*drover.AdmissionRule]
	Access     *Access // nil: not told, and what is here stays
}

// Access is what the regions share of access control.
type Access struct {
	Policies Set[*acl.Policy]
	Roles    Set[*acl.Role]
	Tokens   Set[*acl.Token] // the global ones
	Methods  Set[*acl.AuthMethod]
	Bindings Set[*acl.BindingRule]
}

// Set is the objects of one kind.
type Set[T any] struct {
	Same bool     // nothing changed since the index that was asked with
	Keys []string // of all that there are
	Have []T      // all, or those that changed since that index

	Differs bool     // in place of Keys: they are those of before, without Gone and with those of Have
	Gone    []string // see Differs
}

// kind is what is known of the objects of one kind.
type kind[T any] struct {
	table string
	key   func(T) string
	index func(T) uint64 // of the last change
	same  func(a, b T) bool
}

// all are the tables whose changes regions share.
func all(access bool) []string {
	out := []string{namespaces.table, pools.table, quotas.table, rules.table}
	if access {
		out = append(out, policies.table, roles.table, tokens.table, methods.table, bindings.table)
	}
	return out
}

// Read returns what the regions share of a state: all that there is, and of it those objects that changed after the index. access says
// whether access control is among it.
func Read(s *store.Snapshot, region, epoch string, after uint64, access bool) Objects {
	out := Objects{Region: region, Epoch: epoch}
	for _, table := range all(access) {
		out.Index = max(out.Index, s.TableIndex(table))
	}
	out.Namespaces = read(s, namespaces, s.Namespaces(), after)
	out.Pools = read(s, pools, s.NodePools(), after)
	out.Quotas = read(s, quotas, s.Quotas(""), after)
	out.Rules = read(s, rules, s.AdmissionRules(), after)
	if access {
		out.Access = &Access{
			Policies: read(s, policies, s.ACLPolicies(""), after),
			Roles:    read(s, roles, s.ACLRoles(""), after),
			Tokens:   read(s, tokens, globals(s.ACLTokens("")), after),
			Methods:  read(s, methods, s.AuthMethods(""), after),
			Bindings: read(s, bindings, s.BindingRules(""), after),
		}
	}
	return out
}

func read[T any](s *store.Snapshot, k kind[T], list iter.Seq[T], after uint64) (out Set[T]) {
	if after > 0 && s.TableIndex(k.table) <= after {
		return Set[T]{Same: true}
	}
	for v := range list {
		out.Keys = append(out.Keys, k.key(v))
		if after == 0 || k.index(v) > after {
			out.Have = append(out.Have, v)
		}
	}
	return out
}

// globals are those of the tokens that all regions know.
func globals(list iter.Seq[*acl.Token]) iter.Seq[*acl.Token] {
	return func(yield func(*acl.Token) bool) {
		for t := range list {
			if t.Global && !yield(t) {
				return
			}
		}
	}
}

// with is what is known after an answer that has what changed since.
func (o Objects) with(next Objects) Objects {
	out := next
	out.Namespaces, out.Pools = merge(namespaces, o.Namespaces, next.Namespaces), merge(pools, o.Pools, next.Pools)
	out.Quotas, out.Rules = merge(quotas, o.Quotas, next.Quotas), merge(rules, o.Rules, next.Rules)
	if o.Access != nil && next.Access != nil {
		a, b := o.Access, next.Access
		out.Access = &Access{
			merge(policies, a.Policies, b.Policies), merge(roles, a.Roles, b.Roles), merge(tokens, a.Tokens, b.Tokens),
			merge(methods, a.Methods, b.Methods), merge(bindings, a.Bindings, b.Bindings),
		}
	}
	return out
}

// merge leaves of old what is still there, and puts what changed in its place.
func merge[T any](k kind[T], old, next Set[T]) Set[T] {
	if next.Same {
		return old
	}
	known := k.by(old)
	for key, v := range k.by(next) {
		known[key] = v
	}
	out := Set[T]{Keys: next.Keys}
	if next.Differs {
		out.Keys = missing(old.Keys, next.Gone)
		out.Keys = append(out.Keys, missing(k.keys(next.Have), old.Keys)...)
	}
	for _, key := range out.Keys {
		if v, ok := known[key]; ok {
			out.Have = append(out.Have, v)
		}
	}
	return out
}

// by has the set's objects by their keys.
func (k kind[T]) by(s Set[T]) map[string]T {
	out := make(map[string]T, len(s.Have))
	for _, v := range s.Have {
		out[k.key(v)] = v
	}
	return out
}

// compare returns what is there and not the same here, and what is only here.
func compare[T any](k kind[T], here, there Set[T]) (changed, gone []T) {
	left := k.by(here)
	for _, t := range there.Have {
		if h, ok := left[k.key(t)]; !ok || !k.same(h, t) {
			changed = append(changed, t)
		}
	}
	for _, key := range there.Keys {
		delete(left, key)
	}
	for _, h := range here.Have {
		if _, ok := left[k.key(h)]; ok {
			gone = append(gone, h)
		}
	}
	return changed, gone
}

// keys are those of the objects.
func (k kind[T]) keys(list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = k.key(v)
	}
	return out
}

var (
	namespaces = kind[*tenancy.Namespace]{
		tables.Namespaces, func(n *tenancy.Namespace) string { return n.Name },
		func(n *tenancy.Namespace) uint64 { return n.ModifyIndex }, sameNamespace,
	}
	pools = kind[*drover.NodePool]{
		tables.NodePools, func(p *drover.NodePool) string { return p.Name },
		func(p *drover.NodePool) uint64 { return p.ModifyIndex }, samePool,
	}
	quotas = kind[*tenancy.QuotaSpec]{
		tables.Quotas, func(q *tenancy.QuotaSpec) string { return q.Name },
		func(q *tenancy.QuotaSpec) uint64 { return q.ModifyIndex }, sameQuota,
	}
	rules = kind[*drover.AdmissionRule]{
		tables.AdmissionRules, func(r *drover.AdmissionRule) string { return r.Name },
		func(r *drover.AdmissionRule) uint64 { return r.ModifyIndex }, sameRule,
	}
	policies = kind[*acl.Policy]{
		tables.ACLPolicies, func(p *acl.Policy) string { return p.Name },
		func(p *acl.Policy) uint64 { return p.ModifyIndex }, samePolicy,
	}
	roles = kind[*acl.Role]{
		tables.ACLRoles, func(r *acl.Role) string { return r.ID },
		func(r *acl.Role) uint64 { return r.ModifyIndex }, sameRole,
	}
	tokens = kind[*acl.Token]{
		tables.ACLTokens, func(t *acl.Token) string { return t.AccessorID },
		func(t *acl.Token) uint64 { return t.ModifyIndex }, sameToken,
	}
	methods = kind[*acl.AuthMethod]{
		tables.AuthMethods, func(m *acl.AuthMethod) string { return m.Name },
		func(m *acl.AuthMethod) uint64 { return m.ModifyIndex }, sameMethod,
	}
	bindings = kind[*acl.BindingRule]{
		tables.BindingRules, func(b *acl.BindingRule) string { return b.ID },
		func(b *acl.BindingRule) uint64 { return b.ModifyIndex }, sameBinding,
	}
)

// only leaves of the set the objects that keep says, or that it returns in their place.
func only[T any](k kind[T], s Set[T], keep func(T) (T, bool)) Set[T] {
	out, dropped := Set[T]{Same: s.Same}, map[string]bool{}
	for _, v := range s.Have {
		if v, ok := keep(v); ok {
			out.Have = append(out.Have, v)
		} else {
			dropped[k.key(v)] = true
		}
	}
	out.Keys = slices.DeleteFunc(slices.Clone(s.Keys), func(key string) bool { return dropped[key] })
	return out
}
