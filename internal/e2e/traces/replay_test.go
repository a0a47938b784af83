package traces

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/nomad/api"
)

const (
	// quiet is how long nothing may change before a state counts as where a step ended, as in the recording.
	quiet = 8 * time.Second
	// slack is what a step may take longer than in Nomad, on an idle machine.
	slack = 10 * time.Second
	// gather is how long changes are collected before the job is looked at again.
	gather = 300 * time.Millisecond
	// glance is how far apart the recording's looks were: what came and went in between is no change where it
	// recorded something that goes on.
	glance = 2 * time.Second
	// delay is what a request may be late that is due while what the one before it began is under way.
	delay = time.Second
)

// replay is one history on a cluster.
type replay struct {
	scenario
	cluster *cluster
	load    *load
	job     string // the identifier in place of JOB
	strict  bool
	watch   *watch
	others  []scenario      // outcomes beside the scenario that what happened so far allows
	allocs  int             // of the job when the step began
	report  strings.Builder // what differs
	told    map[string]bool // what differed in the step before
	due     time.Time       // when the requests of the step are to be answered; zero: at any time
	late    time.Duration   // how much the latest of those came later
	busiest float64         // the largest factor of load
	details strings.Builder // what differs in what need not be equal
}

// run plays all steps and tells what differs; it goes on after a step that failed, whose consequences are told too.
func (r *replay) run(ctx context.Context) (string, error) {
	r.watch = r.cluster.watch(r.job)
	defer r.cluster.unwatch(r.watch)
	for i := range r.steps {
		if err := r.step(ctx, r.steps[i]); err != nil {
			return r.report.String(), fmt.Errorf("step %d: %s: %w", i+1, r.steps[i].title, err)
		}
		if r.report.Len() > 0 && r.late > delay { // another history
			break
		}
	}
	if err := r.cluster.clear(ctx, r.job, r.watch); err != nil {
		return r.report.String(), fmt.Errorf("clearing up: %w", err)
	}
	if r.alone {
		if err := r.cluster.reset(ctx); err != nil {
			return r.report.String(), fmt.Errorf("clearing up: %w", err)
		}
	}
	return r.report.String(), nil
}

func (r *replay) step(ctx context.Context, st step) error {
	before, err := look(r.cluster.api, r.job)
	if err != nil {
		return err
	}
	r.cluster.begin(r.watch)
	if before.have["job"]["absent"] == 0 { // Nomad's count was taken before a purge forgot them
		r.allocs = len(before.allocs)
	}
	began := time.Now()
	var differs []string
	for _, q := range st.requests {
		q, err := r.substitute(q, before)
		if err != nil {
			differs = append(differs, err.Error())
			continue
		}
		answer, err := r.send(ctx, q)
		if err != nil {
			return err
		}
		if answer != q.answer() {
			differs = append(differs, fmt.Sprintf("answer:      to %s %s Nomad gave %q, here %q", q.method, q.path, q.answer(), answer))
		}
	}
	sent := time.Now()
	if !r.due.IsZero() {
		r.late = max(r.late, sent.Sub(r.due))
	}
	r.due = time.Time{}
	if st.next > 0 {
		r.due = began.Add(st.next)
		err := sleep(ctx, time.Until(sent.Add(st.next)))
		r.tell(st, differs)
		return err
	}
	if d, ok := waiting(st.title); ok {
		if err := sleep(ctx, d); err != nil {
			return err
		}
	}
	more, err := r.settle(ctx, st, sent)
	if err != nil {
		return err
	}
	for _, d := range more {
		differs = append(differs, d.String())
	}
	r.tell(st, differs)
	return nil
}

// tell notes what differs. What differed in the same way one step earlier is its consequence, and only counted.
func (r *replay) tell(st step, differs []string) {
	told := map[string]bool{}
	as, text := 0, ""
	for _, d := range differs {
		told[d] = true
		if r.told[d] {
			as++
		} else {
			text += "    " + d + "\n"
		}
	}
	if as > 0 {
		text += fmt.Sprintf("    (and %d as in the step before)\n", as)
	}
	if text != "" {
		fmt.Fprintf(&r.report, "  step %d: %s\n%s", st.number, st.title, text)
	}
	r.told = told
}

// settle waits until the job is where it was in Nomad and stays there, and returns what differs if that does not happen
// in time.
func (r *replay) settle(ctx context.Context, st step, sent time.Time) ([]difference, error) {
	still := stillness{moving: st.moving()}
	for {
		r.busiest = max(r.busiest, r.load.factor())
		v, err := look(r.cluster.api, r.job)
		if err != nil {
			return nil, err
		}
		now := time.Now()
		calm := still.since(v, now).Add(time.Duration(st.quiet) * time.Second)
		differs, fits, err := r.judge(st.number, v)
		if err != nil {
			return nil, err
		}
		limit := sent.Add(st.within + time.Duration(r.load.factor()*float64(slack)))
		late := len(differs) > 0 && !now.Before(limit)
		switch {
		case late, len(differs) == 0 && !now.Before(calm):
			if len(fits) > 0 {
				r.scenario, r.others = fits[0], fits[1:]
			}
			for _, d := range compareDetails(st.want, v.have) {
				fmt.Fprintf(&r.details, "  step %d: %s\n", st.number, d)
			}
			return differs, nil
		case len(differs) == 0 && now.After(limit.Add(2*quiet)):
			return []difference{{"quiet", "nothing changes any more", 1, 0}}, nil
		}
		until := limit
		if len(differs) == 0 || calm.Before(limit) && now.Before(calm) {
			until = calm
		}
		if err := r.change(ctx, time.Until(until)); err != nil {
			return nil, err
		}
	}
}

// judge compares with each outcome that is still possible: how the first differs, unless another fits, and which fit.
func (r *replay) judge(number int, v *view) (differs []difference, fits []scenario, err error) {
	lowest, err := r.cluster.lowest(r.watch)
	if err != nil {
		return nil, nil, err
	}
	for i, s := range append([]scenario{r.scenario}, r.others...) {
		st := s.steps[number-1]
		d := compare(st.want, v.have, r.strict && !st.apart)
		if made := len(v.allocs) - r.allocs; !nearly(st.made, max(made, 0)) {
			d = append(d, difference{"made", "allocations", st.made, made})
		}
		if lowest < st.floor {
			d = append(d, difference{"floor", "running and wanted, never fewer", st.floor, lowest})
		}
		if i == 0 {
			differs = d
		}
		if len(d) == 0 {
			fits = append(fits, s)
		}
	}
	if len(fits) > 0 {
		differs = nil
	}
	return differs, fits, nil
}

// moving: something was about to happen when the recording took the state for still, an allocation was to be replaced.
// Its counts move on.
func (st step) moving() bool {
	for line := range st.want["evals"] {
		if strings.Contains(line, "pending ") {
			return true
		}
	}
	return false
}

// stillness tells since when nothing has changed.
type stillness struct {
	moving bool // counts that are loosely timed go on, and what is seen for less than a glance does not count

	text  string
	begun time.Time

	last             string // the state before
	lastBegun, ended time.Time
}

func (s *stillness) since(v *view, now time.Time) time.Time {
	text := v.have.text(!s.moving)
	switch {
	case text == s.text:
	case s.moving && text == s.last && now.Sub(s.ended) < glance:
		s.text, s.begun, s.last = s.last, s.lastBegun, ""
	default:
		s.last, s.lastBegun, s.ended = s.text, s.begun, now
		s.text, s.begun = text, now
	}
	return s.begun
}

// change returns when something about the job happened, or after d.
func (r *replay) change(ctx context.Context, d time.Duration) error { return r.watch.change(ctx, d) }

func (w *watch) change(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(max(d, gather))
	defer timer.Stop()
	select {
	case <-w.changed:
		return sleep(ctx, gather)
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var waitTitle = regexp.MustCompile(`^wait (\d+s)$`)

// waiting: the step was to wait, as its title says.
func waiting(title string) (time.Duration, bool) {
	m := waitTitle.FindStringSubmatch(title)
	if m == nil {
		return 0, false
	}
	d, err := time.ParseDuration(m[1])
	return d, err == nil
}

var (
	jobWord    = regexp.MustCompile(`\bJOB\b`)
	deployment = regexp.MustCompile(`\bDEPLOYMENT-(\d+)\b`)
	allocation = regexp.MustCompile(`\bALLOCATION\(v(\d+) (\w+\[\d+\])\)`)
	node       = regexp.MustCompile(`\bNODE-(\d+)\b`)
)

// unset is a request as the recording leaves it: without the null that removes a value.
var unset = regexp.MustCompile(`^\{"NodeID":"[^"]+"\}$`)

// substitute puts this run's identifiers in place of the recording's.
func (r *replay) substitute(q request, now *view) (request, error) {
	var failed error
	must := func(id string, err error) string {
		if err != nil && failed == nil {
			failed = fmt.Errorf("%s %s: %w", q.method, q.path, err)
		}
		return id
	}
	all := func(text string) string {
		text = jobWord.ReplaceAllLiteralString(text, r.job)
		text = node.ReplaceAllStringFunc(text, func(s string) string {
			i, _ := strconv.Atoi(node.FindStringSubmatch(s)[1])
			if i >= len(r.cluster.nodes) {
				return must(s, fmt.Errorf("there is no %s", s))
			}
			return r.cluster.nodes[i]
		})
		text = deployment.ReplaceAllStringFunc(text, func(s string) string {
			i, _ := strconv.Atoi(deployment.FindStringSubmatch(s)[1])
			return must(r.deployment(i))
		})
		return allocation.ReplaceAllStringFunc(text, func(s string) string {
			m := allocation.FindStringSubmatch(s)
			version, _ := strconv.ParseUint(m[1], 10, 64)
			return must(pick(now.allocs, version, m[2]))
		})
	}
	q.path, q.body = all(q.path), all(q.body)
	if q.path == "/v1/client/metadata" && unset.MatchString(q.body) {
		q.body = strings.TrimSuffix(q.body, "}") + `,"Meta":{"twins":null}}`
	}
	return q, failed
}

func (r *replay) deployment(i int) (string, error) { return deploymentOf(r.cluster.api, r.job, i) }

// deploymentOf finds a job's deployment by its place, the oldest first.
func deploymentOf(c *api.Client, job string, i int) (string, error) {
	list, _, err := c.Jobs().Deployments(job, false, nil)
	if err != nil {
		return "", err
	}
	if i >= len(list) {
		return "", fmt.Errorf("the job has only %d deployments", len(list))
	}
	return oldestFirst(list)[i].ID, nil
}

// pick finds an allocation by its version and name: the one that is wanted, and of several the newest.
func pick(allocs []*api.AllocationListStub, version uint64, name string) (string, error) {
	var best *api.AllocationListStub
	rank := func(a *api.AllocationListStub) int {
		switch {
		case alive(a) && a.DesiredStatus == api.AllocDesiredStatusRun:
			return 2
		case alive(a):
			return 1
		}
		return 0
	}
	for _, a := range allocs {
		if a.JobVersion != version || !strings.HasSuffix(a.Name, "."+name) {
			continue
		}
		if best == nil || rank(a) > rank(best) || rank(a) == rank(best) && a.CreateIndex > best.CreateIndex {
			best = a
		}
	}
	if best == nil {
		return "", fmt.Errorf("there is no allocation %s of version %d", name, version)
	}
	return best.ID, nil
}

// send returns the answer as a transcript has it: the status, and the text of an error.
func (r *replay) send(ctx context.Context, q request) (string, error) {
	req, err := http.NewRequestWithContext(ctx, q.method, r.cluster.base+q.path, strings.NewReader(q.body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	got := request{status: resp.StatusCode}
	if got.status != http.StatusOK {
		got.text = strings.TrimSpace(string(text))
	}
	return strings.ReplaceAll(got.answer(), r.job, "JOB"), nil
}
