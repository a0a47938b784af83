package web

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
)

const aJob = "/ui/jobs/a@b@ns"

func TestAnActionThatEndsSomethingAsksOnceAndNamesIt(t *testing.T) {
	t.Parallel()
	for name, words := range jobText.Actions {
		if words.sure == "" {
			continue
		}
		a := &api{}
		h := page(a)
		form := url.Values{"version": {"3"}}
		w := ask(t, h, "POST", aJob+"/"+name, "good", form)
		require.Equal(t, http.StatusOK, w.Code, name)
		require.Contains(t, w.Body.String(), "<strong><bdi>3</bdi></strong>")
		require.Contains(t, w.Body.String(), `name="sure" value="1"`)
		require.Equal(t, "GET /v1/rights", a.called(), "%s: nothing is done yet", name) // what the bar offers
		inert(t, w.Body.String())
		form.Set("sure", "1")
		w = ask(t, h, "POST", aJob+"/"+name, "good", form)
		require.Equal(t, http.StatusSeeOther, w.Code, name)
		require.Contains(t, a.called(), "\n", "%s: it is done", name)
	}
}

func TestAnActionIsTheAPIs(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"start": "POST /v1/jobs", "evaluate": "POST /v1/job/a@b/evaluate", "force": "POST /v1/job/a@b/periodic/force",
		"dispatch": "POST /v1/job/a@b/dispatch", "promote": "POST /v1/deployment/promote/d1", "pause": "POST /v1/deployment/pause/d1",
	} {
		a := &api{}
		w := ask(t, page(a), "POST", aJob+"/"+name, "good", url.Values{"deployment": {"d1"}})
		require.Equal(t, "/ui/jobs/a@b@ns", w.Header().Get("Location"))
		require.Contains(t, a.called(), want)
		require.Contains(t, follow(t, page(a), w, "good"), jobText.Actions[name].done)
	}
	require.Equal(t, http.StatusNotFound, ask(t, page(&api{}), "POST", aJob+"/nothing", "good", nil).Code)
	w := ask(t, page(&api{}), "POST", aJob+"/evaluate", "", nil)
	require.Equal(t, http.StatusForbidden, w.Code)
	require.Contains(t, w.Body.String(), "Permission denied &lt;b&gt;")
}

func TestAFailedActionSaysSoOnTheJobsPage(t *testing.T) {
	t.Parallel()
	h := page(&api{})
	w := ask(t, h, "POST", aJob+"/scale", "good", url.Values{"group": {hostile}, "count": {"many"}})
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, w.Body.String(), "count: &#34;many&#34; is not a whole number")
	require.Contains(t, w.Body.String(), text.Groups)
	w = ask(t, h, "POST", aJob+"/scale", "good", url.Values{"group": {hostile}, "count": {"4"}})
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, w.Body.String(), "line 3, column 7: &lt;b&gt;")
	inert(t, w.Body.String())
}

func TestMetaIsReadByLines(t *testing.T) {
	t.Parallel()
	got, err := metaOf("a=1\n\n b = x=y\n")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "1", "b": " x=y"}, got)
	_, err = metaOf("a=1\nb\n")
	require.ErrorContains(t, err, `meta, line 2: "b" is not NAME=VALUE`)
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
}

func TestAJobIsPlannedBeforeItIsSubmitted(t *testing.T) {
	t.Parallel()
	a := &api{}
	h := page(a)
	form := url.Values{"source": {"{\"Job\": {\"ID\":\"j\"}}"}, "run": {"1"}}
	w := ask(t, h, "POST", "/ui/jobs/run", "good", form)
	body := w.Body.String()
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, a.called(), "POST /v1/job/j/plan")
	require.NotContains(t, a.called(), "POST /v1/jobs")
	require.Contains(t, body, "<td>3</td>")
	require.Contains(t, body, `name="index" value="7"`)
	inert(t, body)

	form.Set("digest", regexp.MustCompile(`name="digest" value="([^"]*)"`).FindStringSubmatch(body)[1])
	form.Set("index", "7")
	w = ask(t, h, "POST", "/ui/jobs/run", "good", form)
	require.Equal(t, "/ui/jobs/j@default", w.Header().Get("Location"))
	require.Contains(t, a.called(), "POST /v1/jobs")

	form.Set("source", "{\"ID\":\"j\", \"Priority\": 1}")
	w = ask(t, h, "POST", "/ui/jobs/run", "good", form)
	require.Equal(t, http.StatusOK, w.Code, "another file than the planned one is planned first")
}

func TestAFaultyJobFileStays(t *testing.T) {
	t.Parallel()
	h := page(&api{})
	w := ask(t, h, "POST", "/ui/jobs/run", "good", url.Values{"source": {"job \"a\" {\r\n<b>"}, "variables": {"v = 1"}})
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, w.Body.String(), "line 3, column 7: &lt;b&gt;")
	require.Contains(t, w.Body.String(), "job &#34;a&#34; {\n&lt;b&gt;</textarea>")
	require.Contains(t, w.Body.String(), "v = 1</textarea>")
	w = ask(t, h, "POST", "/ui/jobs/run", "good", url.Values{"source": {"{\n \"ID\": grün}"}})
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, w.Body.String(), "line 2, column 8: ")
	w = ask(t, h, "POST", "/ui/jobs/run", "good", url.Values{"source": {"{}"}})
	require.Contains(t, w.Body.String(), "Job.ID: it is empty")
}

// TestAPeriodicJobHasItsLaunches: those of this job alone, with its schedule, and when it is due as far as the viewer may plan.
func TestAPeriodicJobHasItsLaunches(t *testing.T) {
	t.Parallel()
	due := time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC)
	for _, mayPlan := range []bool{true, false} {
		h := of(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var body any = []any{}
			switch r.URL.Path {
			case "/v1/rights":
				levels := &acl.Levels{Namespace: "ns", Capabilities: []string{"read-job"}}
				if mayPlan {
					levels.Capabilities = append(levels.Capabilities, "parse-job", "plan-job")
				}
				body = levels
			case "/v1/job/a@b":
				body = drover.Job{ID: "a@b", Namespace: "ns", Periodic: &drover.PeriodicConfig{Spec: "<b> * *", TimeZone: "UTC"}}
			case "/v1/job/a@b/summary", "/v1/job/a@b/deployment":
				body = map[string]any{}
			case "/v1/job/a@b/plan":
				body = drover.Preview{NextPeriodicLaunch: due}
			case "/v1/jobs":
				require.Equal(t, "a@b/", r.URL.Query().Get("prefix"))
				require.Equal(t, "ns", r.URL.Query().Get("namespace"))
				body = []drover.JobListStub{
					{ID: "a@b/periodic-2", ParentID: "a@b", Namespace: "ns", Status: "running"},
					{ID: "a@b/periodic-1", ParentID: "a@b", Namespace: "ns", Status: "dead"},
					{ID: "a@b/own", Namespace: "ns", Status: "dead"},
				}
			}
			_ = json.NewEncoder(w).Encode(body)
		}))
		body := ask(t, h, "GET", aJob, "good", nil).Body.String()
		require.Contains(t, body, `href="/ui/jobs/a@b%2Fperiodic-2@ns"><bdi>periodic-2</bdi>`)
		require.Contains(t, body, "periodic-1")
		require.NotContains(t, body, ">own<")
		require.Contains(t, body, "<code>&lt;b&gt; * *</code> UTC")
		require.Equal(t, mayPlan, strings.Contains(body, "2026-03-01 12:30:00 UTC"))
		inert(t, body)
	}
}
