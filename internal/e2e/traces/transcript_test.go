package traces

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// scenario is a history as it was recorded.
type scenario struct {
	name  string
	nodes int
	alone bool // changes nodes or settings: nothing else may run on the cluster meanwhile
	steps []step
}

// step is what was done, and what was there afterwards.
type step struct {
	number   int
	title    string
	requests []request
	nothing  string // why the client had nothing to send

	next time.Duration // the next step came so much later, while this one was under way: nothing is compared

	within  time.Duration // how long Nomad took to be still
	made    int           // allocations
	running int           // and wanted, when the step began
	floor   int           // never fewer of them
	quiet   int           // seconds for which nothing changed then
	want    sections
	apart   bool // something else runs here than in Nomad, on purpose, so that the details are of something else, too
}

// request is one request with its answer.
type request struct {
	method, path, body string
	status             int
	text               string // of an error
}

// sections are counted lines by section.
type sections map[string]map[string]int

func (s sections) add(section, line string, n int) {
	if s[section] == nil {
		s[section] = map[string]int{}
	}
	s[section][line] += n
}

// The sections whose lines are equal, the one whose counts are loosely timed, and those that are details.
var (
	exact   = []string{"job", "versions", "live", "deployments", "summary", "blocked", "tasks"}
	loose   = "about"
	details = []string{"events", "evals", "why"}
)

var (
	stepLine    = regexp.MustCompile(`^step (\d+): (.*)$`)
	requestLine = regexp.MustCompile(`^> ([A-Z]+) (/\S.*)$`)
	answerLine  = regexp.MustCompile(`(?s)^= (\d{3})(?: (.*))?$`)
	settledLine = regexp.MustCompile(`^settled within (\S+); allocations made (\d+); running and wanted (\d+) before, never below (\d+)$`)
	nextLine    = regexp.MustCompile(`^next after (\S+), not settled$`)
	countedLine = regexp.MustCompile(`^  ([a-z]+): (\d+) x (.*)$`)
)

// parser reads a transcript line by line. A line that it does not know is an error: nothing of the oracle is skipped.
type parser struct {
	rest []byte
	line int
	s    scenario
}

func parse(text []byte) (scenario, error) {
	p := parser{rest: text, s: scenario{nodes: -1}}
	for len(p.rest) > 0 {
		p.line++
		line := p.next()
		if err := p.read(line); err != nil {
			return scenario{}, fmt.Errorf("line %d: %w", p.line, err)
		}
	}
	if p.s.name == "" || p.s.nodes < 0 || len(p.s.steps) == 0 {
		return scenario{}, fmt.Errorf("line %d: a transcript has a scenario, nodes and steps", p.line)
	}
	for _, st := range p.s.steps {
		if st.next == 0 && st.within == 0 {
			return scenario{}, fmt.Errorf("step %d has no end", st.number)
		}
	}
	return p.s, nil
}

// next takes a line. The text of an error may be compressed, as it came over the wire, and has line ends of its own then.
func (p *parser) next() string {
	if len(p.rest) > 8 && bytes.HasPrefix(p.rest, []byte("= ")) && bytes.Equal(p.rest[6:8], []byte{0x1f, 0x8b}) {
		packed := bytes.NewReader(p.rest[6:])
		if z, err := gzip.NewReader(packed); err == nil {
			z.Multistream(false)
			if text, err := io.ReadAll(z); err == nil && packed.Len() > 0 {
				line := string(p.rest[:6]) + strings.TrimSpace(string(text))
				p.rest = p.rest[len(p.rest)-packed.Len()+1:]
				return line
			}
		}
	}
	line, rest, _ := bytes.Cut(p.rest, []byte("\n"))
	p.rest = rest
	return string(line)
}

func (p *parser) read(line string) error {
	if len(p.s.steps) == 0 && !strings.HasPrefix(line, "step ") {
		return p.head(line)
	}
	if m := stepLine.FindStringSubmatch(line); m != nil {
		n, _ := strconv.Atoi(m[1])
		if n != len(p.s.steps)+1 {
			return fmt.Errorf("step %d follows %d", n, len(p.s.steps))
		}
		p.s.steps = append(p.s.steps, step{number: n, title: m[2], quiet: int(quiet / time.Second), want: sections{}})
		return nil
	}
	return p.inStep(&p.s.steps[len(p.s.steps)-1], line)
}

func (p *parser) head(line string) (err error) {
	key, value, _ := strings.Cut(line, " ")
	switch key {
	case "":
	case "scenario":
		p.s.name = value
	case "nodes":
		p.s.nodes, err = strconv.Atoi(value)
	case "alone":
		p.s.alone, err = strconv.ParseBool(value)
	default:
		err = fmt.Errorf("unknown line %q", line)
	}
	return err
}

func (p *parser) inStep(st *step, line string) (err error) {
	var last *request
	if len(st.requests) > 0 {
		last = &st.requests[len(st.requests)-1]
	}
	switch m := []string(nil); {
	case line == "":
	case strings.HasPrefix(line, "! "):
		st.nothing = line[2:]
	case match(&m, requestLine, line):
		st.requests = append(st.requests, request{method: m[1], path: m[2]})
	case strings.HasPrefix(line, "{") && last != nil && last.status == 0 && last.body == "":
		last.body = line
	case match(&m, answerLine, line) && last != nil && last.status == 0:
		last.status, _ = strconv.Atoi(m[1])
		last.text = m[2]
	case match(&m, settledLine, line):
		st.within, err = time.ParseDuration(m[1])
		st.made, _ = strconv.Atoi(m[2])
		st.running, _ = strconv.Atoi(m[3])
		st.floor, _ = strconv.Atoi(m[4])
	case match(&m, nextLine, line):
		st.next, err = time.ParseDuration(m[1])
	case match(&m, countedLine, line) && known(m[1]):
		n, _ := strconv.Atoi(m[2])
		st.want.add(m[1], m[3], n)
	default:
		return fmt.Errorf("unknown line %q", line)
	}
	return err
}

func match(m *[]string, re *regexp.Regexp, line string) bool {
	*m = re.FindStringSubmatch(line)
	return *m != nil
}

func known(section string) bool {
	for _, s := range append(append([]string{loose}, exact...), details...) {
		if s == section {
			return true
		}
	}
	return false
}
