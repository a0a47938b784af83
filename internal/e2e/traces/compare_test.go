package traces

import (
	"fmt"
	"slices"
	"strings"
)

// difference is a line that Nomad and this project do not have equally often.
type difference struct {
	section, line string
	nomad, here   int
}

func (d difference) String() string {
	return fmt.Sprintf("%-12s Nomad %d, here %d  x %s", d.section+":", d.nomad, d.here, d.line)
}

// compare tells where the two differ; strict is with the details, less what details_test.go leaves out.
func compare(want, have sections, strict bool) []difference {
	var out []difference
	for _, section := range exact {
		out = append(out, lines(section, want[section], have[section], func(a, b int) bool { return a == b })...)
	}
	out = append(out, lines(loose, want[loose], have[loose], nearly)...)
	if !strict {
		return out
	}
	for _, section := range details {
		here, there := comparable(section, have[section]), comparable(section, want[section])
		out = append(out, lines(section, there, here, func(a, b int) bool { return a == b })...)
	}
	return out
}

// compareDetails tells where the two differ in what need not be equal, with all of it.
func compareDetails(want, have sections) []difference {
	var out []difference
	for _, section := range details {
		out = append(out, lines(section, want[section], have[section], func(a, b int) bool { return a == b })...)
	}
	return out
}

// nearly: one more or less, or a quarter of more than four.
func nearly(nomad, here int) bool {
	gap := max(nomad-here, here-nomad)
	return gap <= 1 || nomad > 4 && 4*gap <= nomad
}

func lines(section string, want, have map[string]int, same func(nomad, here int) bool) []difference {
	var out []difference
	for line, n := range want {
		if !same(n, have[line]) {
			out = append(out, difference{section, line, n, have[line]})
		}
	}
	for line, n := range have {
		if _, told := want[line]; !told && !same(0, n) {
			out = append(out, difference{section, line, 0, n})
		}
	}
	slices.SortFunc(out, func(a, b difference) int { return strings.Compare(a.line, b.line) })
	return out
}

// text is the sections that are compared as one string, without or with those that are loosely timed: two views with the
// same text are the same state.
func (s sections) text(all bool) string {
	var out []string
	for section, lines := range s {
		if section != loose && !slices.Contains(exact, section) || section == loose && !all {
			continue
		}
		for line, n := range lines {
			out = append(out, fmt.Sprintf("%s: %d x %s\n", section, n, line))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "")
}
