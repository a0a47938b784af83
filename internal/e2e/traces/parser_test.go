package traces

import (
	"bytes"
	"compress/gzip"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

const small = `scenario small
nodes 2
alone true

step 1: register
> PUT /v1/jobs
{"Job":{"ID":"JOB"}}
= 200
next after 3s, not settled

step 2: promote, then wait
> PUT /v1/deployment/promote/DEPLOYMENT-0
{"All":true}
= 500 not this one
> PUT /v1/job/JOB/periodic/force
= 200
settled within 1m5s; allocations made 3; running and wanted 2 before, never below 1
  job: 1 x service running v0 stop=false stable=true
  about: 3 x ended v0 g stop/complete
  why: 1 x  stop complete: alloc: not needed

step 3: nobody
! no such allocation
settled within 9s; allocations made 0; running and wanted 2 before, never below 2
`

func TestParse(t *testing.T) {
	t.Parallel()
	s, err := parse([]byte(small))
	require.NoError(t, err)
	require.Equal(t, scenario{name: "small", nodes: 2, alone: true, steps: []step{
		{
			number: 1, title: "register", next: 3 * time.Second, quiet: 8, want: sections{},
			requests: []request{{method: "PUT", path: "/v1/jobs", body: `{"Job":{"ID":"JOB"}}`, status: 200}},
		},
		{
			number: 2, title: "promote, then wait", within: 65 * time.Second, made: 3, running: 2, floor: 1, quiet: 8,
			requests: []request{
				{method: "PUT", path: "/v1/deployment/promote/DEPLOYMENT-0", body: `{"All":true}`, status: 500, text: "not this one"},
				{method: "PUT", path: "/v1/job/JOB/periodic/force", status: 200},
			},
			want: sections{
				"job":   {"service running v0 stop=false stable=true": 1},
				"about": {"ended v0 g stop/complete": 3},
				"why":   {" stop complete: alloc: not needed": 1},
			},
		},
		{number: 3, title: "nobody", nothing: "no such allocation", within: 9 * time.Second, running: 2, floor: 2, quiet: 8, want: sections{}},
	}}, s)
}

// The recorder wrote some errors down as they came over the wire.
func TestParseCompressedError(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write([]byte("1 error occurred:\n\t* no\n\n"))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	text := bytes.Replace([]byte(small), []byte("not this one"), packed.Bytes(), 1)
	s, err := parse(text)
	require.NoError(t, err)
	require.Equal(t, "1 error occurred:\n\t* no", s.steps[1].requests[0].text)
	require.Equal(t, 3, s.steps[1].made)
}

func TestParseRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for name, change := range map[string][2]string{
		"a word in the head":        {"nodes 2", "nodes 2\ncolour red"},
		"a number that is none":     {"nodes 2", "nodes two"},
		"a section":                 {"  why: ", "  whence: "},
		"a line without a count":    {"  job: 1 x ", "  job: "},
		"a step out of turn":        {"step 2", "step 4"},
		"a second answer":           {"= 500 not this one", "= 500 not this one\n= 200"},
		"a body without a request":  {"! no such", "{}\n! no such"},
		"an end in other words":     {"allocations made 3", "allocations 3"},
		"a step without an end":     {"next after 3s, not settled\n", ""},
		"a time that is none":       {"next after 3s", "next after three"},
		"a transcript without name": {"scenario small\n", ""},
	} {
		text := bytes.Replace([]byte(small), []byte(change[0]), []byte(change[1]), 1)
		_, err := parse(text)
		require.Error(t, err, name)
	}
}

func TestNearly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		nomad, here int
		same        bool
	}{{0, 0, true}, {0, 1, true}, {1, 0, true}, {0, 2, false}, {4, 5, true}, {4, 6, false}, {8, 10, true}, {8, 11, false}, {8, 6, true}, {
		7, 9,
		false,
	}} {
		require.Equal(t, c.same, nearly(c.nomad, c.here), "%+v", c)
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	want := sections{"live": {"a": 2, "b": 1}, "about": {"c": 4}, "events": {"d": 1}}
	require.Empty(t, compare(want, sections{"live": {"a": 2, "b": 1}, "about": {"c": 3}}, false))
	require.Equal(t, []difference{{"live", "a", 2, 1}, {"live", "x", 0, 1}, {"about", "c", 4, 0}, {"about", "y", 0, 2}},
		compare(want, sections{"live": {"a": 1, "b": 1, "x": 1}, "about": {"y": 2}}, false))
	require.Equal(t, []difference{{"events", "d", 1, 0}}, compare(want, sections{"live": {"a": 2, "b": 1}, "about": {"c": 4}}, true))
}

func TestExceptions(t *testing.T) {
	t.Parallel()
	s, err := parse([]byte(small))
	require.NoError(t, err)
	changed, err := except(s, []exception{{"another", "", nil}, {"small", "so", []string{
		"2 answer: 500 not this one -> 400 no\nnot this",
		"2 job: 1 x service running v0 stop=false stable=true ->",
		"2-3 live: -> 2 x v0 g run/running",
		"2 about: 3 x ended v0 g stop/complete -> 6 x ended v0 g stop/complete",
		"2 made: 3 -> 6",
		"3 floor: 2 -> 0",
	}}})
	require.NoError(t, err)
	require.Equal(t, request{
		method: "PUT", path: "/v1/deployment/promote/DEPLOYMENT-0", body: `{"All":true}`, status: 400,
		text: "no\nnot this",
	}, changed.steps[1].requests[0])
	require.Equal(t, 6, changed.steps[1].made)
	require.Equal(t, 0, changed.steps[2].floor)
	require.Equal(t, sections{
		"job": {}, "live": {"v0 g run/running": 2}, "about": {"ended v0 g stop/complete": 6},
		"why": {" stop complete: alloc: not needed": 1},
	}, changed.steps[1].want)
	require.Equal(t, 3, s.steps[1].want["about"]["ended v0 g stop/complete"], "the history itself stays as it was")

	for _, wrong := range []string{
		"", "nonsense", "4 made: 3 -> 4", "2 made: 4 -> 3", "2 colour: red -> blue", "2 job: service -> none",
		"2 job: 2 x absent ->", "3 answer: 200 -> 400 no", "2 job: -> 1 x service running v0 stop=false stable=true",
	} {
		_, err := except(s, []exception{{"small", "so", []string{wrong}}})
		require.Error(t, err, wrong)
	}
	_, err = except(s, []exception{{"small", "", []string{"2 made: 3 -> 6"}}})
	require.Error(t, err, "an exception has a reason")
}

// Every transcript can be read, every row of the tables is about one of them, and a third runs with all tests.
func TestTables(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, s := range histories(t) {
		names[s[0].name] = true
	}
	require.Len(t, names, 131)
	for _, e := range append(slices.Clone(exceptions), races...) {
		require.Contains(t, names, e.scenario)
	}
	for name := range pending {
		require.Contains(t, names, name)
	}
	for _, name := range representative {
		require.Contains(t, names, name)
	}
	require.GreaterOrEqual(t, len(representative)*3, len(names))
}

// A dip counts even if it is over before the job is looked at, and what happens within one entry of the log does not.
func TestWatchSeesEveryMoment(t *testing.T) {
	t.Parallel()
	c := &cluster{watches: map[string]*watch{}}
	w := c.watch("web")
	event := func(job, id, desired, client string) api.Event {
		return api.Event{Topic: api.TopicAllocation, Key: id, FilterKeys: []string{job}, Payload: map[string]any{
			"Allocation": map[string]any{"ID": id, "JobID": job, "DesiredStatus": desired, "ClientStatus": client},
		}}
	}
	apply := func(events ...api.Event) { c.apply(&api.Events{Events: events}) }
	apply(event("web", "a", "run", "running"), event("web", "b", "run", "running"), event("web-high", "x", "run", "running"))
	c.begin(w)
	lowest := func() int {
		n, err := c.lowest(w)
		require.NoError(t, err)
		return n
	}
	require.Equal(t, 2, lowest())
	apply(event("web", "a", "stop", "running"), event("web", "c", "run", "running"))
	require.Equal(t, 2, lowest())
	apply(event("web", "b", "run", "failed"))
	apply(event("web", "b", "run", "running"))
	require.Equal(t, 1, lowest())
	c.begin(w)
	require.Equal(t, 2, lowest())
	apply(event("other", "b", "run", "failed"))
	require.Equal(t, 2, lowest())
	select {
	case <-w.changed:
	default:
		t.Error("nobody was told")
	}
}

func TestPick(t *testing.T) {
	t.Parallel()
	allocs := []*api.AllocationListStub{
		{ID: "gone", Name: "web.g[0]", JobVersion: 1, DesiredStatus: "stop", ClientStatus: "failed", CreateIndex: 9},
		{ID: "old", Name: "web.g[0]", JobVersion: 1, DesiredStatus: "run", ClientStatus: "running", CreateIndex: 2},
		{ID: "new", Name: "web.g[0]", JobVersion: 1, DesiredStatus: "run", ClientStatus: "running", CreateIndex: 5},
		{ID: "other", Name: "web.g[1]", JobVersion: 1, DesiredStatus: "run", ClientStatus: "running", CreateIndex: 6},
		{ID: "later", Name: "web.g[0]", JobVersion: 2, DesiredStatus: "run", ClientStatus: "running", CreateIndex: 7},
		{ID: "failed", Name: "web.g[0]", JobVersion: 3, DesiredStatus: "run", ClientStatus: "failed", CreateIndex: 8},
	}
	for version, want := range map[uint64]string{1: "new", 2: "later", 3: "failed"} {
		id, err := pick(allocs, version, "g[0]")
		require.NoError(t, err)
		require.Equal(t, want, id)
	}
	_, err := pick(allocs, 4, "g[0]")
	require.Error(t, err)
}
