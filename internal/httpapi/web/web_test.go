package web

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/net/html"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/cookies"
	"github.com/drover-project/drover/internal/httpapi/web/static"
	"github.com/drover-project/drover/jobdiff"
	"github.com/drover-project/drover/usage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const hostile = "<img src=x onerror=alert(1)>\u202Etxt\"'"

// api stands for the API: whoever shows the token "good" may do all.
type api struct {
	mu           sync.Mutex
	calls        []string                // guarded by mu
	environments []execution.Environment // constant
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) { //nolint:gocyclo,funlen // a table of answers
	call := r.Method + " " + r.URL.Path
	if r.Method == http.MethodPut {
		body, _ := io.ReadAll(r.Body)
		call += " " + string(body)
	}
	a.mu.Lock()
	a.calls = append(a.calls, call)
	a.mu.Unlock()
	reply := func(status int, body any) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}
	receipt := execution.Receipt{ExitCode: 137, Cause: execution.CauseOOM, Error: "<b>why</b>"}
	switch path := r.URL.Path; {
	case r.Header.Get("X-Drover-Token") != "good" || r.Header.Get("Cookie") != "":
		reply(http.StatusForbidden, map[string]string{"message": "Permission denied <b>"})
	case path == "/v1/rights":
		reply(http.StatusOK, map[string]any{"management": true, "namespace": r.URL.Query().Get("namespace")})
	case path == "/v1/environments" && r.URL.Query().Get("namespace") == "*":
		reply(http.StatusOK, a.environments)
	case path == "/v1/jobs":
		w.Header().Set("Drover-Total", "1234")
		w.Header().Set("Drover-Counts", "dead=1234, running=5")
		if r.URL.Query().Get("next_token") == "" {
			w.Header().Set("X-Nomad-Nexttoken", "p 2")
		}
		reply(http.StatusOK, []drover.JobListStub{{ID: r.URL.RawQuery + hostile, Namespace: "ns", Status: "running"}})
	case path == "/v1/job/a@b" && r.URL.Query().Get("namespace") == "ns":
		reply(http.StatusOK, drover.Job{ID: "a@b", TaskGroups: []*drover.TaskGroup{{Name: hostile, Tasks: []*drover.Task{{Name: hostile}}}}})
	case path == "/v1/job/a@b/allocations", path == "/v1/node/n1/allocations":
		reply(http.StatusOK, []drover.AllocationListStub{{
			ID: "0123456789", Name: hostile, NodeName: hostile, JobID: hostile, ClientStatus: "running", NextAllocation: "9876543210",
			DeploymentStatus: &drover.AllocDeploymentStatus{Healthy: new(true), Canary: true}, JobVersion: 7,
			TaskStates: map[string]*drover.TaskState{hostile: {Restarts: 4}},
		}})
	case path == "/v1/job/a@b/evaluations":
		reply(http.StatusOK, []drover.Evaluation{{ID: "e1", FailedTGAllocs: map[string]*drover.AllocationMetric{
			hostile: {NodesEvaluated: 1, ConstraintFiltered: map[string]int{hostile: 1}},
		}}})
	case path == "/v1/job/a@b/deployment":
		groups := map[string]*drover.DeploymentState{hostile: {DesiredCanaries: 1}}
		reply(http.StatusOK, drover.Deployment{ID: "d1", Status: "running", StatusDescription: hostile, TaskGroups: groups})
	case path == "/v1/job/a@b/deployments":
		reply(http.StatusOK, []drover.Deployment{{ID: "d1", StatusDescription: hostile}})
	case path == "/v1/job/a@b/versions":
		reply(http.StatusOK, map[string]any{"Versions": []drover.Job{{Version: 1}, {Version: 0}}, "Diffs": []*jobdiff.Job{{
			Fields: []*jobdiff.Field{{Type: "Edited", Name: "Meta[" + hostile + "]", Old: hostile, New: "n"}},
		}}})
	case path == "/v1/job/a@b/submission":
		reply(http.StatusOK, drover.JobSubmission{Source: hostile})
	case path == "/v1/job/a@b/scale", path == "/v1/jobs/parse":
		reply(http.StatusBadRequest, map[string]string{"message": "line 3, column 7: <b>"})
	case path == "/v1/job/j/plan":
		reply(http.StatusOK, drover.Preview{JobModifyIndex: 7, Warnings: hostile, Diff: &jobdiff.Job{}, Annotations: &drover.PlanAnnotations{
			DesiredTGUpdates: map[string]*drover.DesiredUpdates{hostile: {Place: 3}},
		}})
	case path == "/v1/node/n1":
		reply(http.StatusOK, drover.Node{
			ID: "n1", Name: hostile, Status: "ready", SchedulingEligibility: "ineligible", Meta: map[string]string{hostile: hostile},
			Drivers:    map[string]*drover.DriverInfo{hostile: {Detected: true, HealthDescription: hostile}},
			Attributes: map[string]string{hostile: hostile},
			Events:     []*drover.NodeEvent{{Message: hostile}},
		})
	case path == "/v1/usage":
		reply(http.StatusOK, usage.Samples{Allocations: map[string]*usage.AllocResourceUsage{"0123456789": {ResourceUsage: &usage.ResourceUsage{
			MemoryStats: &usage.MemoryStats{RSS: 3 << 20},
		}}}})
	case path == "/v1/client/metadata":
		reply(http.StatusOK, map[string]any{})
	case path == "/v1/usage/history":
		reply(http.StatusOK, usage.Past{Step: usage.PastStep, CPU: []float64{2, -1, 30, 7.5}, Memory: []int64{1 << 20, -1, 3 << 20, -1}})
	case path == "/v1/drain/plan":
		reply(http.StatusOK, drover.DrainPlan{NodeID: "n1", Hidden: 3, Moves: []drover.DrainMove{
			{AllocID: "a1", Name: hostile, JobID: hostile, Namespace: "ns", Fate: drover.DrainMoves, ToNodeID: "n2", ToNodeName: hostile},
			{AllocID: "a2", Name: "big", JobID: "big", Namespace: "ns", Fate: drover.DrainWaits, Why: []string{hostile}},
		}})
	case path == "/v1/client/stats":
		reply(http.StatusOK, usage.HostStats{
			CPU: []*usage.HostCPUStats{{Idle: 50}, {Idle: 75}}, Memory: &usage.HostMemoryStats{Total: 4096, Used: 2048},
		})
	case path == "/v1/job/gone":
		reply(http.StatusNotFound, map[string]string{"message": "job not found"})
	case path == "/v1/nodes":
		reply(http.StatusOK, []drover.NodeListStub{{ID: "n1", Name: hostile, Status: "ready", SchedulingEligibility: "ineligible"}})
	case strings.HasPrefix(path, "/v1/allocation"), strings.HasPrefix(path, "/v1/client/"):
		allocationAPI(w, r)
	case path == "/v1/run":
		var asked execution.RunRequest
		_ = json.NewDecoder(r.Body).Decode(&asked)
		if r.URL.Query().Get("namespace") != execution.NamespaceOf(asked.Environment) {
			reply(http.StatusBadRequest, map[string]string{"message": "another namespace"})
			return
		}
		reply(http.StatusOK, execution.RunResult{
			Stdout: fmt.Sprintf("%s|%s|%q", asked.Command, *asked.Files[0].Text, asked.Input), Stderr: hostile, Receipt: receipt,
		})
	case path == "/v1/runners":
		reply(http.StatusCreated, execution.Runner{ID: "r/1"})
	default:
		reply(http.StatusOK, map[string]string{})
	}
}

func (a *api) called() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.calls, "\n")
}

// page is the face behind the checks of all faces.
func page(a *api) http.Handler { return of(a) }

// of is the face behind the checks of all faces, with an API of its own.
func of(a http.Handler) http.Handler {
	f := &Face{API: a, Clock: clock.Wall{}}
	return httpapi.Handler(httpapi.Config{Logger: slog.New(slog.DiscardHandler), Clock: clock.Wall{}}, f)
}

func ask(t *testing.T, h http.Handler, method, path, token string, form url.Values) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost:4646"+path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if token != "" {
		w := httptest.NewRecorder()
		cookies.SetToken(w, r, token)
		r.AddCookie(w.Result().Cookies()[0])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestSigningIn(t *testing.T) {
	t.Parallel()
	h := page(&api{})
	w := ask(t, h, "POST", "/ui/login", "", url.Values{"token": {" good\n"}, "next": {"/ui/play?x=1"}})
	require.Equal(t, http.StatusSeeOther, w.Code)
	require.Equal(t, "/ui/play?x=1", w.Header().Get("Location"))
	c := w.Result().Cookies()[0]
	require.Equal(t, "drover-4646", c.Name)
	require.True(t, c.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, c.SameSite)
	require.Equal(t, "/ui", c.Path)
	require.Zero(t, c.MaxAge, "it ends with the browser")

	for _, token := range []string{"wrong", ""} {
		w = ask(t, h, "POST", "/ui/login", "", url.Values{"token": {token}})
		require.GreaterOrEqual(t, w.Code, 400)
		require.Empty(t, w.Result().Cookies())
		require.Contains(t, w.Body.String(), "Permission denied &lt;b&gt;")
	}
	for _, next := range []string{"//evil.example/ui/", "https://evil.example", "/ui/\\evil", "/v1/jobs", "/ui/\r\nX: y", ""} {
		w = ask(t, h, "POST", "/ui/login", "", url.Values{"token": {"good"}, "next": {next}})
		require.Equal(t, "/ui/", w.Header().Get("Location"), next)
	}
	w = ask(t, h, "POST", "/ui/logout", "good", nil)
	require.Negative(t, w.Result().Cookies()[0].MaxAge)
}

func TestWhoMayNotIsTold(t *testing.T) {
	t.Parallel()
	w := ask(t, page(&api{}), "GET", "/ui/play", "", nil)
	require.Contains(t, w.Body.String(), text.Forbidden)
	require.Contains(t, w.Body.String(), `href="/ui/login?next=%2Fui%2Fplay"`)
	require.NotContains(t, w.Body.String(), `id="play"`)
}

// inert checks that a document's only code is modules of the page's own, and that what others named is text.
func inert(t *testing.T, document string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(document))
	require.NoError(t, err)
	for n := range root.Descendants() {
		require.NotContains(t, []string{"img", "b", "style", "iframe"}, n.Data)
		for _, a := range n.Attr {
			require.False(t, strings.HasPrefix(a.Key, "on") || a.Key == "style", a.Key)
			if a.Key == "href" || a.Key == "src" || a.Key == "action" {
				require.True(t, strings.HasPrefix(a.Val, "/ui/") || a.Val == "#main", a.Val)
			}
		}
		if n.Data == "script" {
			require.Nil(t, n.FirstChild)
		}
	}
}

func TestNoPageHoldsCodeOrIsFramed(t *testing.T) {
	t.Parallel()
	h := page(&api{environments: []execution.Environment{{ID: hostile}}})
	for _, path := range []string{
		"/ui/play", "/ui/login", "/ui/nothing", "/ui/jobs", "/ui/jobs/a@b@ns",
		"/ui/allocations", "/ui/allocations/a1", "/ui/allocations/a1/logs", "/ui/allocations/a1/terminal",
		"/ui/allocations/a1/files", "/ui/allocations/a1/files?path=" + url.QueryEscape(hostile), "/ui/clients",
		"/ui/jobs/a@b@ns/versions", "/ui/jobs/a@b@ns/evaluations", "/ui/jobs/a@b@ns/deployments", "/ui/jobs/a@b@ns/definition",
		"/ui/jobs/run", "/ui/jobs/run?job=a%40b&namespace=ns", "/ui/clients/n1", "/ui/topology", "/ui/topology?node=n1",
		"/ui/topology?job=" + url.QueryEscape(hostile) + "%40ns", "/ui/topology?view=table&job=a%40b%40ns",
		"/ui/topology?q=" + url.QueryEscape(hostile), "/ui/environments", "/ui/login?next=" + url.QueryEscape(hostile),
	} {
		w := ask(t, h, "GET", path, "good", nil)
		inert(t, w.Body.String())
		require.Contains(t, w.Header().Get("Content-Security-Policy"), "script-src 'self'; style-src 'self'")
		terminal := strings.HasSuffix(path, "/terminal") || path == "/ui/play"
		require.Equal(t, terminal, strings.Contains(w.Header().Get("Content-Security-Policy"), "unsafe"), path)
		require.Contains(t, w.Header().Get("Content-Security-Policy"), "frame-ancestors 'none'")
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	}
	require.Contains(t, ask(t, h, "GET", "/ui/play", "good", nil).Body.String(), "&lt;img src=x onerror=alert(1)&gt;\u202Etxt&#34;&#39;")
}

// TestEveryFormIsOfThisPage has a page of another origin send each form.
func TestEveryFormIsOfThisPage(t *testing.T) {
	t.Parallel()
	a := &api{}
	h, forms := page(a), 0
	for _, route := range (&Face{}).Routes() {
		method, path, _ := strings.Cut(route.Pattern, " ")
		if method == "GET" {
			continue
		}
		forms++
		r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost:4646"+path, http.NoBody)
		r.Header.Set("Origin", "http://localhost:4647")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, http.StatusForbidden, w.Code, path)
	}
	require.GreaterOrEqual(t, forms, 5)
	require.Empty(t, a.called())
}

func TestAssets(t *testing.T) {
	t.Parallel()
	h, all := page(&api{}), 0
	for name, content := range static.Plain() {
		path := static.Address(name).String()
		r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost:4646"+path, http.NoBody)
		r.Header.Set("Accept-Encoding", "gzip")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Contains(t, w.Header().Get("Cache-Control"), "immutable")
		require.NotEmpty(t, w.Header().Get("Content-Type"), name)
		all += w.Body.Len()
		z, err := gzip.NewReader(w.Body)
		require.NoError(t, err)
		got, err := io.ReadAll(z)
		require.NoError(t, err)
		require.Equal(t, content, got)
		r.Header.Set("If-None-Match", w.Header().Get("Etag"))
		again := httptest.NewRecorder()
		h.ServeHTTP(again, r)
		require.Equal(t, http.StatusNotModified, again.Code)
		require.Equal(t, content, ask(t, h, "GET", path, "", nil).Body.Bytes())
		require.Equal(t, "no-store", ask(t, h, "GET", "/ui/static/0/"+name, "", nil).Header().Get("Cache-Control"), "of another version")
	}
	require.Less(t, all, 40<<10, "compressed script and style of all pages")
	require.Equal(t, http.StatusNotFound, ask(t, h, "GET", "/ui/static/0/..%2Fface.go", "", nil).Code)
}

func TestLists(t *testing.T) {
	t.Parallel()
	h := page(&api{environments: []execution.Environment{{ID: "e", Image: "host"}}})
	body := ask(t, h, "GET", "/ui/jobs?q=w%26&status=dead&sort=-type&junk=1", "good", nil).Body.String()
	require.Contains(t, body, "namespace=%2A&amp;per_page=50&amp;search=w%26&amp;sort=-type&amp;stale=true&amp;status=dead", "the API does it")
	require.Contains(t, body, `href="/ui/jobs?q=w%26&amp;status=dead&amp;sort=-type&amp;after=p+2"`)
	require.Contains(t, body, `<th scope="col" aria-sort="descending"><a href="/ui/jobs?q=w%26&amp;status=dead&amp;sort=type">Type</a>`)
	require.Contains(t, body, `<th scope="col"><a href="/ui/jobs?q=w%26&amp;status=dead">Job</a>`)
	require.Contains(t, body, `<span class="status ok">running</span>`)
	require.Contains(t, body, "1234 found")
	require.Contains(t, body, `href="/ui/jobs?q=w%26&amp;status=running&amp;sort=-type"><span class="status ok">running</span> 5</a>`)
	require.Contains(t, body, `aria-current="true" href="/ui/jobs?q=w%26&amp;sort=-type"><span class="status idle">dead</span> 1234</a>`)
	inert(t, body)
	body = ask(t, h, "GET", "/ui/jobs?after=p+2&sort=rack&status=x", "good", nil).Body.String()
	require.Contains(t, body, "namespace=%2A&amp;next_token=p+2&amp;per_page=50&amp;sort=name&amp;stale=true", "what is unknown is left out")
	require.Contains(t, body, "First page")
	require.NotContains(t, body, "Next page")
	require.Contains(t, ask(t, h, "GET", "/ui/allocations", "good", nil).Body.String(),
		`aria-sort="descending"><a href="/ui/allocations?sort=created">`)
	require.Contains(t, ask(t, h, "GET", "/ui/clients", "good", nil).Body.String(), `<span class="status warn">ineligible</span>`)
	for path, holds := range map[string][]string{
		"/ui/jobs/a@b@ns": {`<span class="status ok">healthy</span> · canary`, "<td>7</td>"}, "/ui/clients/n1": {`<a href="/ui/jobs/`},
	} {
		body := ask(t, h, "GET", path, "good", nil).Body.String()
		for _, s := range append(holds, `<a href="/ui/allocations/0123456789">`, `<a href="/ui/allocations/9876543210">`, "<td>4</td>",
			"3.0 MiB") {
			require.Contains(t, body, s, path)
		}
	}
	require.Contains(t, ask(t, h, "GET", "/ui/environments", "good", nil).Body.String(), "0 / 0")
	w := ask(t, h, "GET", "/ui/jobs/gone", "good", nil)
	require.Equal(t, http.StatusNotFound, w.Code)
	require.Contains(t, w.Body.String(), "job not found")
	for _, path := range []string{"/ui/jobs", "/ui/jobs/a@b@ns", "/ui/allocations/a1", "/ui/clients", "/ui/clients/n1", "/ui/environments"} {
		w = ask(t, h, "GET", path, "", nil)
		require.Equal(t, http.StatusForbidden, w.Code, path)
		require.Contains(t, w.Body.String(), text.Forbidden)
		inert(t, w.Body.String())
	}
}
