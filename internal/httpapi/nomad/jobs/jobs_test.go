package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
)

// A job's id may hold slashes, also those of the paths below a job: the longest path that is known wins.
func TestAJobsPathIsTakenApart(t *testing.T) {
	t.Parallel()
	called := ""
	table := func(name string, suffixes ...string) map[string]jobPath {
		m := map[string]jobPath{}
		for _, s := range suffixes {
			m[s] = jobPath{handle: func(_ http.ResponseWriter, _ *http.Request, id string) error {
				called = fmt.Sprintf("%s%s of %s", name, s, id)
				return nil
			}}
		}
		return m
	}
	reads := table("read ", "", "/summary", "/scale")
	writes := table("write ", "", "/dispatch", "/dispatch/payload", "/scale")
	for path, want := range map[string]string{
		"web":                             "read  of web",
		"web/summary":                     "read /summary of web",
		"web/scale":                       "read /scale of web",
		"a/b":                             "read  of a/b",
		"a%2Fb":                           "read  of a/b",
		"a/b/summary":                     "read /summary of a/b",
		"summary":                         "read  of summary",
		"summary/summary":                 "read /summary of summary",
		"a%2Fsummary":                     "read  of a/summary",
		"dispatch-1/dispatch-2":           "read  of dispatch-1/dispatch-2",
		"web/dispatch/periodic-1/summary": "read /summary of web/dispatch/periodic-1",
		"a%20b%25":                        "read  of a b%",
	} {
		called = ""
		r := httptest.NewRequest(http.MethodGet, jobRoot+path, nil)
		require.NoError(t, route(httptest.NewRecorder(), r, reads, writes), path)
		require.Equal(t, want, called, path)
	}
	for path, status := range map[string]int{"web/dispatch": 405, "web/dispatch/payload": 405, "": 400} {
		r := httptest.NewRequest(http.MethodGet, jobRoot+path, nil)
		require.Equal(t, status, httpapi.Status(route(httptest.NewRecorder(), r, reads, writes)), path)
	}
	r := httptest.NewRequest(http.MethodPut, jobRoot+"web/summary", nil)
	require.Equal(t, 405, httpapi.Status(route(httptest.NewRecorder(), r, writes, reads)), "it registers no job")
}

func TestATagsPathIsTakenApart(t *testing.T) {
	t.Parallel()
	for path, want := range map[string][2]string{
		"web/versions/good/tag":               {"web", "good"},
		"a/b/versions/x/tag":                  {"a/b", "x"},
		"a%2Fb/versions/x%2Fy/tag":            {"a/b", "x/y"},
		"versions/versions/tag/tag":           {"versions", "tag"},
		"a/versions/b/versions/c/tag":         {"a/versions/b", "c"},
		"web/versions//tag":                   {},
		"web/versions/x/y/tag":                {},
		"/versions/x/tag":                     {},
		"web/versions/x":                      {},
		"web/tag":                             {},
		"web":                                 {},
		"web/versions/" + "%00" + "/tag":      {"web", "\x00"},
		"web/versions/%E2%82%AC/tag":          {"web", "€"},
		"web/versions/a+b/tag":                {"web", "a+b"},
		strings.Repeat("a", 9) + "/versions/": {},
	} {
		id, name, ok := taggedPath(httptest.NewRequest(http.MethodPut, jobRoot+path, nil))
		require.Equal(t, want != [2]string{}, ok, path)
		if ok {
			require.Equal(t, want, [2]string{id, name}, path)
		}
	}
}

// What the reference lists is what the tables answer.
func TestPathsListTheTables(t *testing.T) {
	t.Parallel()
	f := newFace(nil, Config{})
	require.Len(t, Paths(readsOf), len(f.reads))
	require.Len(t, Paths(writesOf), len(f.writes)+1)
	require.Equal(t, []string{"DELETE /v1/job/{id}", "DELETE /v1/job/{id}/versions/{name}/tag"}, Paths(endOf))
	require.Nil(t, Paths("GET /v1/jobs"))
	expanded := 0
	for _, r := range Routes(nil, Config{}) {
		if Paths(r.Pattern) != nil {
			expanded++
		}
	}
	require.Equal(t, 3, expanded, "each of the three patterns is in the table")
}

// JSON has one kind of number; the whole ones become what a job file would have made of them.
func TestWholeNumbersBecomeIntegers(t *testing.T) {
	t.Parallel()
	var job drover.Job
	require.NoError(t, json.Unmarshal([]byte(`{"TaskGroups":[null,{"Scaling":{"Policy":{"cooldown":3}},"Tasks":[null,{"Config":
		{"a":1,"b":2.5,"c":[1,{"d":-7}],"e":"1","f":true,"g":1e300,"h":9007199254740993,"i":null,"j":-0.0}}]}]}`), &job))
	restoreIntegers(&job)
	require.Equal(t, map[string]any{"cooldown": int64(3)}, job.TaskGroups[1].Scaling.Policy)
	require.Equal(t, map[string]any{
		"a": int64(1), "b": 2.5, "c": []any{int64(1), map[string]any{"d": int64(-7)}}, "e": "1", "f": true, "g": 1e300,
		"h": 9007199254740992.0, "i": nil, "j": int64(0),
	}, job.TaskGroups[1].Tasks[1].Config)
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float64().Draw(t, "v")
		switch got := integers(v).(type) {
		case int64:
			require.InDelta(t, v, float64(got), 0)
		case float64:
			require.False(t, v == math.Trunc(v) && math.Abs(v) < 1<<53, "%v is whole", v)
		}
	})
}

// A client that keeps pointers (Nomad's) finds set what was set, and nothing else.
func TestOnlyWhatIsSetIsWritten(t *testing.T) {
	t.Parallel()
	zero, no := 0, false
	job := &drover.Job{
		ID: "x", AllAtOnce: no, Meta: map[string]string{},
		TaskGroups: []*drover.TaskGroup{{
			Name: "g", Count: &zero,
			Tasks: []*drover.Task{{Name: "t", Config: map[string]any{"n": 0, "b": false}, Env: nil}},
		}},
	}
	text, err := json.Marshal(OnlySet(job))
	require.NoError(t, err)
	require.JSONEq(t, `{"ID":"x","Meta":{},"TaskGroups":[{"Name":"g","Count":0,"Tasks":[{"Name":"t","Config":{"n":0,"b":false}}]}]}`,
		string(text))
	var read api.Job
	require.NoError(t, json.Unmarshal(text, &read))
	require.Nil(t, read.Priority)
	require.Equal(t, &zero, read.TaskGroups[0].Count)
	require.Equal(t, "null", func() string { b, _ := json.Marshal(OnlySet(nil)); return string(b) }())
}

func TestFaultsAreListed(t *testing.T) {
	t.Parallel()
	one, two := errors.New("one"), errors.New("two")
	for _, c := range []struct {
		err  error
		want []string
	}{
		{one, []string{"one"}},
		{errors.Join(one, two), []string{"one", "two"}},
		{drover.Errorf(drover.Invalid, "job: %w", errors.Join(one, two)), []string{"one", "two"}},
		{fmt.Errorf("twice: %w", fmt.Errorf("wrapped: %w", errors.Join(two))), []string{"two"}},
	} {
		require.Equal(t, c.want, faults(c.err), c.err)
	}
}

func TestConfigsAreLeftToTheirDrivers(t *testing.T) {
	t.Parallel()
	job := &drover.Job{ID: "j", TaskGroups: []*drover.TaskGroup{
		nil,
		{Name: "a", Tasks: []*drover.Task{nil, {Name: "good", Driver: "known"}, {Name: "bad", Driver: "known"}}},
		{Name: "pool", Pool: &drover.WarmPool{}, Tasks: []*drover.Task{{Name: "bad", Driver: "known"}}},
	}}
	asked := 0
	f := &face{Config: Config{ValidateTask: func(task *drover.Task) (bool, error) {
		asked++
		if task.Name == "bad" {
			return true, errors.Join(errors.New("command: must be set"), errors.New("unknown key \"x\""))
		}
		return task.Driver == "known", nil
	}}}
	all, err := f.validateConfigs(job)
	require.True(t, all)
	require.Equal(t, 2, asked, "a pool's task gets its command later")
	require.Equal(t, []string{
		"job.group[a].task[bad].Config.command: must be set", `job.group[a].task[bad].Config: unknown key "x"`,
	}, faults(err))
	job.TaskGroups[1].Tasks = job.TaskGroups[1].Tasks[:2]
	job.TaskGroups[1].Tasks[1].Driver = "foreign"
	all, err = f.validateConfigs(job)
	require.NoError(t, err)
	require.False(t, all, "nobody could ask about a foreign driver")
	all, err = (&face{}).validateConfigs(job)
	require.NoError(t, err)
	require.False(t, all)
}
