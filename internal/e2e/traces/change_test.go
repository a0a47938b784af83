package traces

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// race is a history that can go on in more than one way, in Nomad as well as here, because something is done at a moment
// that the recording chose by the clock: the lines are another outcome, which holds to its end.
type race = exception

// Here an allocation runs some milliseconds after it was placed, in Nomad after half a second and more, so that a rollout
// is further after the same two or three seconds.
const further = "The rollout is one allocation further when the next step comes."

var races = []race{
	{"drain-canary", "Two of the old version and not the canary are on the drained node.", []string{
		"3-5 deployments: 1 x #0 v0 successful (Deployment completed successfully) g: total=3 canaries=0 promoted=false healthy=4 -> 1 x #0 " +
			"v0 successful (Deployment completed successfully) g: total=3 canaries=0 promoted=false healthy=5",
		"3-4 deployments: 1 x #1 v1 running (Deployment is running but requires manual promotion) g: total=3 canaries=1 promoted=false " +
			"healthy=2 -> 1 x #1 v1 running (Deployment is running but requires manual promotion) g: total=3 canaries=1 promoted=false healthy=1",
		"5 deployments: 1 x #1 v1 successful (Deployment completed successfully) g: total=3 canaries=1 promoted=true healthy=4 -> 1 x #1 v1 " +
			"successful (Deployment completed successfully) g: total=3 canaries=1 promoted=true healthy=3",
	}},
	{"drain-canary", "The canary is not on the drained node.", []string{
		"3-4 deployments: 1 x #1 v1 running (Deployment is running but requires manual promotion) g: total=3 canaries=1 promoted=false " +
			"healthy=2 -> 1 x #1 v1 running (Deployment is running but requires manual promotion) g: total=3 canaries=1 promoted=false healthy=1",
		"5 deployments: 1 x #1 v1 successful (Deployment completed successfully) g: total=3 canaries=1 promoted=true healthy=4 -> 1 x #1 v1 " +
			"successful (Deployment completed successfully) g: total=3 canaries=1 promoted=true healthy=3",
	}},
	{"drain-canary", "Two of the old version are on the drained node.", []string{
		"3-5 deployments: 1 x #0 v0 successful (Deployment completed successfully) g: total=3 canaries=0 promoted=false healthy=4 -> 1 x #0 " +
			"v0 successful (Deployment completed successfully) g: total=3 canaries=0 promoted=false healthy=5",
	}},
	{"drain-force", "Two of the three are on the drained node, and a forced drain takes both at once.", []string{
		"2 live: 1 x v0 g run/running -> 2 x v0 g run/running",
		"2 live: 2 x v0 g run/running healthy=true -> 1 x v0 g run/running healthy=true",
		"2 floor: 2 -> 1",
	}},
	{"drain-while-roll", "One of the new version is on the drained node already, and counts twice.", []string{
		"3-4 deployments: 1 x #1 v1 successful (Deployment completed successfully) g: total=4 canaries=0 promoted=false healthy=4 -> 1 x #1 " +
			"v1 successful (Deployment completed successfully) g: total=4 canaries=0 promoted=false healthy=5",
	}},
	{"drain-while-roll", "Two of the new version are on the drained node already, and count twice.", []string{
		"3-4 deployments: 1 x #1 v1 successful (Deployment completed successfully) g: total=4 canaries=0 promoted=false healthy=4 -> 1 x #1 " +
			"v1 successful (Deployment completed successfully) g: total=4 canaries=0 promoted=false healthy=6",
		"3-4 about: 4 x deployment #1 v1 g placed -> 6 x deployment #1 v1 g placed",
		"3-4 about: -> 2 x ended v1 g stop/complete healthy=true",
		"3-4 about: 4 x summary g complete -> 6 x summary g complete",
	}},
	{"drain-force", moved, []string{
		"2 live: 1 x v0 g run/running ->",
		"2 live: 2 x v0 g run/running healthy=true -> 3 x v0 g run/running healthy=true",
	}},
	{"drain-one", moved, []string{
		"2 live: 1 x v0 g run/running ->",
		"2 live: 3 x v0 g run/running healthy=true -> 4 x v0 g run/running healthy=true",
	}},
	{"fail-deployment", further, []string{
		"3-6 live: 3 x v0 g run/running healthy=true -> 2 x v0 g run/running healthy=true",
		"3-4 live: 1 x v1 g run/running healthy=true -> 2 x v1 g run/running healthy=true",
		"5 live: -> 1 x v1 g run/running healthy=true",
		"6 live: 1 x v1 g run/running healthy=true -> 2 x v1 g run/running healthy=true",
		"3-7 deployments: 1 x #1 v1 failed (Deployment marked as failed) g: total=4 canaries=0 promoted=false healthy=1 -> 1 x #1 v1 failed " +
			"(Deployment marked as failed) g: total=4 canaries=0 promoted=false healthy=2",
	}},
	{"fail-deployment-revert", further, []string{
		"3 deployments: 1 x #1 v1 failed (Deployment marked as failed - rolling back to job version 0) g: total=4 canaries=0 promoted=false " +
			"healthy=1 -> 1 x #1 v1 failed (Deployment marked as failed - rolling back to job version 0) g: total=4 canaries=0 promoted=false " +
			"healthy=2",
		"3 about: 2 x summary g complete -> 4 x summary g complete",
	}},
	{"pause", further, []string{
		"3 floor: 4 -> 3",
		"3-4 live: 3 x v0 g run/running healthy=true -> 2 x v0 g run/running healthy=true",
		"3-4 live: 1 x v1 g run/running healthy=true -> 2 x v1 g run/running healthy=true",
		"3-4 deployments: 1 x #1 v1 paused (Deployment is paused) g: total=4 canaries=0 promoted=false healthy=1 -> 1 x #1 v1 paused " +
			"(Deployment is paused) g: total=4 canaries=0 promoted=false healthy=2",
	}},
	{"roll-superseded", further, []string{
		"3-5 deployments: 1 x #1 v1 cancelled (Cancelled due to newer version of job) g: total=4 canaries=0 promoted=false healthy=2 -> 1 x " +
			"#1 v1 cancelled (Cancelled due to newer version of job) g: total=4 canaries=0 promoted=false healthy=3",
	}},
	{"sibling-fails", "The other task ends after one second, which is min_healthy_time: whichever is seen first.", []string{
		"1 job: 1 x service dead v0 stop=false stable=true -> 1 x service dead v0 stop=false stable=false",
		"1 versions: 1 x v0 stable=true -> 1 x v0 stable=false",
		"1 deployments: 1 x #0 v0 successful (Deployment completed successfully) g: total=1 canaries=0 promoted=false healthy=1 -> 1 x #0 v0 " +
			"failed (Failed due to unhealthy allocations) g: total=1 canaries=0 promoted=false healthy=0",
	}},
	{"system-restarts", "The task ends after one second, which is min_healthy_time: whichever is seen first.", []string{
		"1 job: 1 x system running v0 stop=false stable=true -> 1 x system running v0 stop=false stable=false",
		"1 versions: 1 x v0 stable=true -> 1 x v0 stable=false",
		"1 deployments: 1 x #0 v0 successful (Deployment completed successfully) g: total=2 canaries=0 promoted=false healthy=2 -> 1 x #0 v0 " +
			"failed (Failed due to unhealthy allocations) g: total=2 canaries=0 promoted=false healthy=0",
	}},
	{"system-restarts", "The task ends after one second, which is min_healthy_time: whichever is seen first on a node.", []string{
		"1 job: 1 x system running v0 stop=false stable=true -> 1 x system running v0 stop=false stable=false",
		"1 versions: 1 x v0 stable=true -> 1 x v0 stable=false",
		"1 deployments: 1 x #0 v0 successful (Deployment completed successfully) g: total=2 canaries=0 promoted=false healthy=2 -> 1 x #0 v0 " +
			"failed (Failed due to unhealthy allocations) g: total=2 canaries=0 promoted=false healthy=1",
	}},
	{"stop-start", "The rollout is at its end when the job is stopped.", []string{
		"6 job: 1 x service dead v4 stop=true stable=false -> 1 x service dead v4 stop=true stable=true",
		"6-7 versions: 1 x v3 stable=false -> 1 x v3 stable=true",
		"6-7 versions: 1 x v4 stable=false -> 1 x v4 stable=true",
		"6-7 deployments: 1 x #2 v3 cancelled (Cancelled because job is stopped) g: total=2 canaries=0 promoted=false healthy=1 -> 1 x #2 v3 " +
			"successful (Deployment completed successfully) g: total=2 canaries=0 promoted=false healthy=2",
	}},
	{"stop-start", "The rollout is about to end when the job is stopped.", []string{
		"6-7 deployments: 1 x #2 v3 cancelled (Cancelled because job is stopped) g: total=2 canaries=0 promoted=false healthy=1 -> 1 x #2 v3 " +
			"cancelled (Cancelled because job is stopped) g: total=2 canaries=0 promoted=false healthy=2",
	}},
}

// outcomes are the history as it has to end, and the other ways in which it may. The table of exceptions holds in all.
func outcomes(s scenario) ([]scenario, error) {
	first, err := except(s, exceptions)
	if err != nil {
		return nil, err
	}
	out := []scenario{first}
	for _, r := range races {
		if r.scenario == s.name {
			other, err := except(first, []exception{r})
			if err != nil {
				return nil, err
			}
			out = append(out, other)
		}
	}
	return out, nil
}

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
