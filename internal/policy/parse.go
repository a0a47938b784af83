package policy

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/drover-project/drover"
)

// Parse reads rules in HCL or JSON. Errors: Invalid with all problems, each with its line and column.
func Parse(rules string) (*Rules, error) {
	if len(rules) > maxText {
		return nil, drover.Errorf(drover.Invalid, "failed to parse policy: the rules have %d bytes: make them %d at most", len(rules), maxText)
	}
	source := []byte(rules)
	parse := parseHCL
	if t := bytes.TrimSpace(source); len(t) > 0 && t[0] == '{' { // which HCL cannot begin with
		parse = parseJSON
	}
	top, wrong := parse(source)
	r := &reader{found: wrong, rules: &Rules{
		Namespaces: map[string]Namespace{}, NodePools: map[string]Set[PoolCapability]{}, HostVolumes: map[string]Set[VolumeCapability]{},
	}}
	if len(wrong.problems) == 0 {
		r.policy(top)
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return r.rules, nil
}

// reader turns the tree into rules and notes what is wrong with it.
type reader struct {
	*found
	rules        *Rules
	count        int // of labels
	fleetDefined bool
}

// ruleNames are the keys of a policy.
var ruleNames = append([]string{"namespace", "node_pool", "host_volume"}, partNames...)

// policy reads a whole policy.
func (r *reader) policy(top value) {
	seen := map[string]bool{}
	for _, i := range top.items {
		switch i.key {
		case "namespace":
			r.labelled(i, "-", r.namespace)
		case "node_pool":
			r.labelled(i, "-_", r.nodePool)
		case "host_volume":
			r.labelled(i, "-_.", r.hostVolume)
		default:
			part, known := partNames.find(i.key)
			switch {
			case !known:
				r.addf(i.at, "unknown rule %q%s", i.key, suggestion(i.key, ruleNames))
			case seen[i.key]:
				r.addf(i.at, "a policy has one %s rule at most", i.key)
			default:
				r.part(i, part)
			}
			seen[i.key] = true
		}
	}
	if len(top.items) == 0 {
		r.addf(place{1, 1}, "the policy has no rules: write one such as namespace \"default\" { policy = \"read\" }")
	}
	if !r.fleetDefined {
		r.rules.Parts[Fleet] = r.rules.Parts[Operator]
	}
}

// labelled reads each rule of an item whose objects have labels. A namespace without one is the default namespace.
func (r *reader) labelled(i item, marks string, rule func(label item, body value)) {
	for _, o := range r.objects(i) {
		if i.key == "namespace" && unlabelled(i, o) {
			rule(item{key: drover.DefaultNamespace, at: i.at}, o)
			continue
		}
		if len(o.items) == 0 {
			r.addf(i.at, "the %s rule needs a name: write %s \"NAME\" { … }", i.key, i.key)
		}
		for _, label := range o.items {
			r.label(i.key, label, marks)
			for _, body := range r.objects(label) {
				rule(label, body)
			}
		}
	}
}

// unlabelled reports whether the object is a namespace's rule, and not rules by name.
func unlabelled(i item, o value) bool {
	return slices.ContainsFunc(o.items, func(s item) bool {
		return s.value.kind == text || s.key == "capabilities" && s.value.kind == list || i.block && s.key == "variables"
	})
}

// objects returns the objects that an item has: itself, or the elements of its list.
func (r *reader) objects(i item) (out []value) {
	all := []value{i.value}
	if i.value.kind == list {
		all = i.value.list
	}
	for _, v := range all {
		if v.kind != object {
			r.addf(v.at, "%q is a block such as { policy = \"read\" }", i.key)
			continue
		}
		out = append(out, v)
	}
	return out
}

// settings returns the items of a rule by key, and refuses others and repeated ones.
func (r *reader) settings(of string, body value, keys ...string) map[string]item {
	out := map[string]item{}
	for _, i := range body.items {
		_, twice := out[i.key]
		switch {
		case !slices.Contains(keys, i.key):
			r.addf(i.at, "unknown key %q in a %s rule%s", i.key, of, suggestion(i.key, keys))
		case twice:
			r.addf(i.at, "%q is given twice in one rule", i.key)
		default:
			out[i.key] = i
		}
	}
	return out
}

// label checks the name or glob of a rule.
func (r *reader) label(of string, label item, marks string) {
	r.counted(label.at)
	other := func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '*' && !strings.ContainsRune(marks, c)
	}
	if label.key == "" || len(label.key) > 128 || strings.IndexFunc(label.key, other) >= 0 {
		r.addf(label.at, "invalid %s name %q: give 1 to 128 letters, digits or one of %q, with * for any text", of, label.key, marks+"*")
	}
}

// counted notes one more label.
func (r *reader) counted(at place) {
	if r.count++; r.count == maxRules+1 {
		r.addf(at, "the policy has more than %d rules: make several of it", maxRules)
	}
}

// glob is the label with one * for several in a row.
func glob(label string) string {
	for strings.Contains(label, "**") {
		label = strings.ReplaceAll(label, "**", "*")
	}
	return label
}

// suggestion names the word that begins most like the one given, for who mistyped it.
func suggestion(word string, words []string) string {
	best, same := "", 1 // fewer letters are no likeness
	for _, n := range words {
		common := 0
		for common < min(len(n), len(word)) && n[common] == word[common] {
			common++
		}
		if common > same {
			best, same = n, common
		}
	}
	if best == "" {
		return ": write one of " + strings.Join(slices.Sorted(maps.Keys(setOf(words))), ", ")
	}
	return " (did you mean " + best + "?)"
}

func setOf(words []string) map[string]bool {
	out := map[string]bool{}
	for _, w := range words {
		out[w] = true
	}
	return out
}
