package traces

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// change is one line of an exception: in which steps, in which section, which line of Nomad's gives way to which here.
//
//	3-5 summary: 1 x g queued=0 running=2 … -> 1 x g queued=0 running=1 …
//	2 about: -> 6 x summary g failed
//	4 answer: 200 -> 400 the text
//	2 floor: 3 -> 2
//	2 made: 1 -> 4
//	2 quiet: 8 -> 0     seconds for which nothing may change: what is begun anew again and again is never still
type change struct {
	first, last   int
	section       string
	nomad, ours   string
	nomadN, oursN int
}

var (
	changeLine = regexp.MustCompile(`(?s)^(\d+)(?:-(\d+))? ([a-z]+):(?: (.*?))? ->(?: (.*))?$`)
	countLine  = regexp.MustCompile(`^(\d+) x (.*)$`)
)

func parseChange(line string) (change, error) {
	m := changeLine.FindStringSubmatch(line)
	if m == nil {
		return change{}, fmt.Errorf("not `steps section: Nomad's line -> the line here`: %q", line)
	}
	c := change{section: m[3], nomad: m[4], ours: m[5]}
	c.first, _ = strconv.Atoi(m[1])
	c.last = c.first
	if m[2] != "" {
		c.last, _ = strconv.Atoi(m[2])
	}
	if known(c.section) {
		for _, side := range []struct {
			text *string
			n    *int
		}{{&c.nomad, &c.nomadN}, {&c.ours, &c.oursN}} {
			if *side.text == "" {
				continue
			}
			n := countLine.FindStringSubmatch(*side.text)
			if n == nil {
				return change{}, fmt.Errorf("not `n x line`: %q", *side.text)
			}
			*side.n, _ = strconv.Atoi(n[1])
			*side.text = n[2]
		}
	}
	return c, nil
}

// except returns the history with the table's expectations in place of Nomad's. A row that names what Nomad does not have
// is an error.
func except(s scenario, table []exception) (scenario, error) {
	s.steps = slices.Clone(s.steps)
	for i, st := range s.steps {
		s.steps[i].requests = slices.Clone(st.requests)
		s.steps[i].want = sections{}
		for section, lines := range st.want {
			for line, n := range lines {
				s.steps[i].want.add(section, line, n)
			}
		}
	}
	for _, e := range table {
		if e.scenario != s.name {
			continue
		}
		if len(e.lines) == 0 || e.reason == "" {
			return s, fmt.Errorf("%s: an exception has a reason and lines", s.name)
		}
		for _, line := range e.lines {
			c, err := parseChange(line)
			if err != nil {
				return s, fmt.Errorf("%s: %w", s.name, err)
			}
			if c.first < 1 || c.last > len(s.steps) || c.first > c.last {
				return s, fmt.Errorf("%s: no such step: %q", s.name, line)
			}
			for i := c.first - 1; i < c.last; i++ {
				if err := s.steps[i].change(c); err != nil {
					return s, fmt.Errorf("%s: step %d: %w: %q", s.name, i+1, err, line)
				}
			}
			if slices.Contains(exact, c.section) || c.section == loose {
				for i := c.first - 1; i < len(s.steps); i++ {
					s.steps[i].apart = true
				}
			}
		}
	}
	return s, nil
}

func (st *step) change(c change) error {
	switch {
	case known(c.section):
		if c.nomad != "" {
			if st.want[c.section][c.nomad] != c.nomadN {
				return fmt.Errorf("Nomad has this line %d times", st.want[c.section][c.nomad])
			}
			delete(st.want[c.section], c.nomad)
		}
		if c.ours != "" {
			if st.want[c.section][c.ours] != 0 {
				return fmt.Errorf("Nomad has the line %d times that is to be new", st.want[c.section][c.ours])
			}
			st.want.add(c.section, c.ours, c.oursN)
		}
		return nil
	case c.section == "answer":
		for i := range st.requests {
			if r := &st.requests[i]; r.answer() == c.nomad {
				status, text, _ := strings.Cut(c.ours, " ")
				r.text = text
				var err error
				r.status, err = strconv.Atoi(status)
				return err
			}
		}
		return fmt.Errorf("no request has this answer")
	case c.section == "floor":
		return number(&st.floor, c)
	case c.section == "made":
		return number(&st.made, c)
	case c.section == "quiet":
		return number(&st.quiet, c)
	}
	return fmt.Errorf("no such section")
}

func number(n *int, c change) (err error) {
	if strconv.Itoa(*n) != c.nomad {
		return fmt.Errorf("Nomad has %d", *n)
	}
	*n, err = strconv.Atoi(c.ours)
	return err
}

func (r request) answer() string { return strings.TrimSpace(fmt.Sprintf("%d %s", r.status, r.text)) }
