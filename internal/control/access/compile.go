package access

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/rights"
)

// rights returns what the policies allow together. Policies are parsed once for each of their versions, and compiled once for each set.
func (r *Resolver) rights(of store.History, policies []*acl.Policy) (*rights.Rights, error) {
	slices.SortFunc(policies, func(a, b *acl.Policy) int { return strings.Compare(a.Name, b.Name) })
	var key []byte
	for _, p := range policies {
		key = binary.AppendUvarint(append(append(key, p.Name...), 0), p.ModifyIndex)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.history != of { // another state was restored: the same names and indexes may be other policies
		r.history = of
		clear(r.parsed)
		clear(r.compiled)
	}
	if have := r.compiled[string(key)]; have != nil {
		return have, nil
	}
	var rules []*policy.Rules
	for _, p := range policies {
		parsed, err := r.parse(p)
		if err != nil {
			return nil, drover.Errorf(drover.Internal, errBadRules, p.Name, err)
		}
		rules = append(rules, parsed)
	}
	made := rights.Compile(rules...)
	put(r.compiled, maxCompiled, string(key), made)
	return made, nil
}

// parse returns the policy's rules. The caller holds mu.
func (r *Resolver) parse(p *acl.Policy) (*policy.Rules, error) {
	key := version{p.Name, p.ModifyIndex}
	if have := r.parsed[key]; have != nil {
		return have, nil
	}
	rules, err := policy.Parse(p.Rules)
	if err != nil {
		return nil, err
	}
	put(r.parsed, maxParsed, key, rules)
	return rules, nil
}
