package scenario

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover"
)

// Scenario is what is done to the world: a text that people can read, change and keep.
//
//	seed 42
//	nodes 4
//	span 5m0s
//	12.5s service web count=3 cpu=300 ports=1
//	40s crash 10s
//
// Everything else is drawn from the seed.
type Scenario struct {
	Seed    uint64
	Nodes   int
	Servers int           // 0 = one, which is alone
	Span    time.Duration // faults end then; from there on everything has to come to rest
	Steps   []Step
}

// Step is one thing that a client, an operator or bad luck does.
type Step struct {
	At   time.Duration
	Verb string
	Args []string // names, then key=value
}

// String returns the scenario's text.
func (s Scenario) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d\nnodes %d\nspan %s\n", s.Seed, s.Nodes, s.Span)
	if s.Servers > 0 {
		fmt.Fprintf(&b, "servers %d\n", s.Servers)
	}
	for _, step := range s.Steps {
		fmt.Fprintln(&b, step)
	}
	return b.String()
}

// String returns the step's line.
func (s Step) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", s.At, s.Verb, strings.Join(s.Args, " ")))
}

// Parse reads a scenario's text; # begins a comment. Errors: Invalid with the line.
func Parse(text string) (Scenario, error) {
	var s Scenario
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		var err error
		switch {
		case len(f) < 2:
			err = drover.Errorf(drover.Invalid, "too short")
		case f[0] == "seed":
			s.Seed, err = strconv.ParseUint(f[1], 10, 64)
		case f[0] == "nodes":
			s.Nodes, err = strconv.Atoi(f[1])
		case f[0] == "servers":
			s.Servers, err = strconv.Atoi(f[1])
		case f[0] == "span":
			s.Span, err = time.ParseDuration(f[1])
		default:
			step := Step{Verb: f[1], Args: f[2:]}
			step.At, err = time.ParseDuration(f[0])
			s.Steps = append(s.Steps, step)
		}
		if err != nil {
			return s, drover.Errorf(drover.Invalid, "line %d: %w", i+1, err)
		}
	}
	return s, nil
}
