package rights

import (
	"cmp"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/policy"
)

// table finds the one rule that holds for a name: that of the name itself, else that of the glob with the most characters beside its
// stars. Of globs with equally many one that denies holds, else the first in the order of bytes.
type table[C ~uint8] struct {
	exact   map[string]policy.Set[C]
	begins  fixed[C]     // globs such as web-*, by what stands before the star
	ends    fixed[C]     // globs such as *-web, by what stands behind it
	others  []pattern[C] // the best first
	entries int
}

// fixed are globs with one star at one end, by their text without it. A lookup costs one step for each length that there is, and
// not for each glob.
type fixed[C ~uint8] struct {
	by      map[string]*pattern[C]
	lengths []int // of the texts, descending
}

// pattern is a rule whose label is a glob.
type pattern[C ~uint8] struct {
	glob  string
	weigh int // how many characters have to be the name's
	set   policy.Set[C]
}

// better reports whether the rule holds rather than the other one.
func (p *pattern[C]) better(o *pattern[C]) bool {
	switch {
	case o == nil:
		return true
	case p.weigh != o.weigh:
		return p.weigh > o.weigh
	case p.set.Denies() != o.set.Denies():
		return p.set.Denies()
	}
	return p.glob < o.glob
}

// newTable makes a table of rules by label.
func newTable[C ~uint8](rules map[string]policy.Set[C]) *table[C] {
	t := &table[C]{
		exact: map[string]policy.Set[C]{}, begins: fixed[C]{by: map[string]*pattern[C]{}}, ends: fixed[C]{by: map[string]*pattern[C]{}},
		entries: len(rules),
	}
	for label, set := range rules {
		stars := strings.Count(label, "*")
		p := pattern[C]{label, len(label) - stars, set}
		switch {
		case stars == 0:
			t.exact[label] = set
		case stars == 1 && label[len(label)-1] == '*':
			t.begins.add(label[:len(label)-1], &p)
		case stars == 1 && label[0] == '*':
			t.ends.add(label[1:], &p)
		default:
			t.others = append(t.others, p)
		}
	}
	slices.SortFunc(t.others, func(a, b pattern[C]) int {
		switch {
		case a.better(&b):
			return -1
		case b.better(&a):
			return 1
		}
		return 0
	})
	t.begins.sort()
	t.ends.sort()
	return t
}

func (f *fixed[C]) add(text string, p *pattern[C]) {
	f.by[text] = p
	if !slices.Contains(f.lengths, len(text)) {
		f.lengths = append(f.lengths, len(text))
	}
}

func (f *fixed[C]) sort() {
	slices.SortFunc(f.lengths, func(a, b int) int { return cmp.Compare(b, a) })
}

// prefixOf returns the longest glob whose text the name begins with, nil if there is none.
func (f *fixed[C]) prefixOf(name string) *pattern[C] {
	for _, n := range f.lengths {
		if n <= len(name) {
			if p := f.by[name[:n]]; p != nil {
				return p
			}
		}
	}
	return nil
}

// suffixOf returns the longest glob whose text the name ends with, nil if there is none.
func (f *fixed[C]) suffixOf(name string) *pattern[C] {
	for _, n := range f.lengths {
		if n <= len(name) {
			if p := f.by[name[len(name)-n:]]; p != nil {
				return p
			}
		}
	}
	return nil
}

// find returns the capabilities of the rule that holds for the name; the empty set if none does.
func (t *table[C]) find(name string) policy.Set[C] {
	if t == nil || t.entries == 0 {
		return 0
	}
	if set, ok := t.exact[name]; ok {
		return set
	}
	if p := t.glob(name); p != nil {
		return p.set
	}
	return 0
}

// glob returns the best glob that matches the name, nil if none does.
func (t *table[C]) glob(name string) *pattern[C] {
	best := t.begins.prefixOf(name)
	if p := t.ends.suffixOf(name); p != nil && p.better(best) {
		best = p
	}
	for i := range t.others {
		p := &t.others[i]
		if !p.better(best) {
			break // they are sorted
		}
		if matches(p.glob, name) {
			return p
		}
	}
	return best
}

// any reports whether a rule has the capability, whatever names there are.
func (t *table[C]) any(c C) bool {
	if t == nil {
		return false
	}
	for _, set := range t.exact {
		if set.Has(c) {
			return true
		}
	}
	for _, f := range []*fixed[C]{&t.begins, &t.ends} {
		for _, p := range f.by {
			if p.set.Has(c) {
				return true
			}
		}
	}
	return slices.ContainsFunc(t.others, func(p pattern[C]) bool { return p.set.Has(c) })
}

// matches reports whether the glob matches the whole name. It takes at most the product of both lengths.
func matches(glob, name string) bool {
	star, mark := -1, 0
	g, n := 0, 0
	for n < len(name) {
		switch {
		case g < len(glob) && glob[g] == '*': // before the comparison: a name may have a star itself
			star, mark = g, n
			g++
		case g < len(glob) && glob[g] == name[n]:
			g++
			n++
		case star >= 0: // the last star takes one more
			mark++
			g, n = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(glob[g:], "*") == ""
}
