package web

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi/web/viewers"
)

// aHerd answers for an environment with one claimed and one warm runner, and two executions, whose names are hostile.
func aHerd(t *testing.T) fixed {
	t.Helper()
	say := func(v any) string {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		return string(text)
	}
	claimed := execution.Runner{
		ID: "team~py-a1", AllocID: "a1234567890", Environment: "py", Namespace: "team", NodeID: "n1234567890", State: execution.RunnerClaimed,
		ClaimedAt: time.Unix(1, 0),
		Labels:    map[string]string{"student": hostile},
	}
	warm := execution.Runner{AllocID: "b1234567890", Environment: "py", Namespace: "team", NodeID: "n1", State: execution.RunnerWarm}
	runs := execution.Execution{ID: "x1", RunnerID: claimed.ID, Running: true, Spec: execution.Spec{Argv: []string{"sh", hostile}}}
	ended := execution.Execution{ID: "x2", RunnerID: claimed.ID, Receipt: &execution.Receipt{
		ExitCode: 137, Cause: execution.CauseOOM,
		Error: hostile,
	}}
	pools := []execution.PoolHistory{{Environment: "py", Namespace: "team", Size: []int{-1, 3}, Warm: []int{-1, 1}}}
	pools[0].Claims = execution.LatencyHistory{
		All:   execution.Latency{Count: 1, P50: 1234 * time.Microsecond},
		Steps: []execution.Latency{{}, {Count: 1, P50: time.Second}},
	}
	kept := execution.History{From: time.Unix(0, 0), Step: time.Minute, LatencyStep: time.Minute, Pools: pools, Missing: 2}
	api := fixed{}
	for path, v := range map[string]any{
		"/v1/environment/team~py":      execution.Environment{ID: "py", Namespace: "team", Image: hostile},
		"/v1/environment/team~py/pool": execution.PoolStatus{Size: 3, Warm: 1, Waiting: 2, LastError: hostile},
		"/v1/metrics/history":          kept,
		"/v1/environments":             []execution.Environment{{ID: "py", Namespace: "team", Image: hostile}, {ID: "go"}},
		"/v1/runners":                  []execution.Runner{warm, claimed},
		"/v1/runner/team~py-a1":        claimed, "/v1/runner/team~py-a1/executions": []execution.Execution{ended, runs},
		"/v1/execution/x1": runs, "/v1/execution/x2": ended,
		"/v1/executions": []execution.Listed{
			{Execution: runs, Namespace: "team", Environment: "py"}, {Execution: ended, Namespace: "team", Environment: "py"},
		},
	} {
		api[path] = struct {
			status int
			body   string
		}{http.StatusOK, say(v)}
	}
	api["/v1/rights"] = fixedAnswer(`{"management": true}`)
	api["/v1/execution/x2/output"] = struct {
		status int
		body   string
	}{http.StatusOK, hostile + strings.Repeat("y", 256<<10)}
	return api
}

func TestEnvironmentsRunnersAndExecutions(t *testing.T) {
	t.Parallel()
	h := of(aHerd(t))
	const text = "&lt;img src=x onerror=alert(1)&gt;"
	for path, holds := range map[string][]string{
		"/ui/environments/team~py": {
			text, "1 / 3", `data-chart="{&#34;from&#34;:0,`, `<th scope="col">p99</th>`, "1.2ms",
			`<a href="/ui/runners/team~py-a1">`, `<a href="/ui/allocations/b1234567890">`, `data-live="Environment Runner"`,
			`aria-current="true">1h</a>`,
		},
		"/ui/environments": {
			`<a href="/ui/environments/team~py">`, "1.2ms / – / – (1)", "1 to 1 warm of 3", `class="chart spark"`, "charts.js",
			`<span class="status bad"><bdi>` + text, `data-live="Environment Runner" data-every="5"`, "Of 2 of them",
		},
		"/ui/runners": {`<a href="/ui/environments/team~py">`, "student=" + text, `<span class="status ok">warm</span>`},
		"/ui/runners/team~py-a1": {
			`<a href="/ui/executions/x1">`, `<span class="status prog">runs</span>`, `<a href="/ui/executions?runner=team~py-a1">`,
			`<a href="/ui/clients/n1234567890">`,
		},
		"/ui/executions": {
			`<a href="/ui/executions/x2">`, "sh " + text, `<span class="status bad">killed: out of memory</span>`,
			`<a href="/ui/environments/team~py">`, `<span class="status prog">runs</span>`, `data-live="Execution Runner" data-every="5"`,
		},
		"/ui/executions?runner=team~py-a1&exit=" + url.QueryEscape(hostile): {
			`<input id="runner" class="brief" name="runner" value="team~py-a1">`, text, "?sort=status&amp;runner=team~py-a1&amp;exit=",
		},
		"/ui/executions/x1": {
			`id="player"`, `data-socket="/ui/executions/x1/live"`, `"/ui/executions/x1/output?stream=stderr"`, `data-every="1"`,
			"execution.js",
		},
		"/ui/executions/x2": {
			text, "It was killed for memory after –, when it had 0 B.", "The first 256.0 KiB are shown", `<dd class="bad">137</dd>`,
		},
	} {
		w := ask(t, h, "GET", path, "good", nil)
		require.Equal(t, http.StatusOK, w.Code, path)
		inert(t, w.Body.String())
		for _, s := range holds {
			require.Contains(t, w.Body.String(), s, path)
		}
	}
	require.NotContains(t, ask(t, h, "GET", "/ui/executions/x2", "good", nil).Body.String(), `id="follow"`)
	require.Equal(t, http.StatusForbidden, ask(t, of(fixed{}), "GET", "/ui/executions/x1", "", nil).Code)
	require.Equal(t, http.StatusForbidden, ask(t, of(fixed{}), "GET", "/ui/executions", "", nil).Code)
}

// TestAListThatIsAskedForWronglyKeepsWhatWasTyped: the form is there with it, and what the API says.
func TestAListThatIsAskedForWronglyKeepsWhatWasTyped(t *testing.T) {
	t.Parallel()
	api := fixed{}
	api["/v1/executions"] = struct {
		status int
		body   string
	}{http.StatusBadRequest, `{"code":"invalid","message":"since: want a time"}`}
	w := ask(t, of(api), "GET", "/ui/executions?since=yesterday&environment=py", "good", nil)
	inert(t, w.Body.String())
	for _, s := range []string{`<input id="since" class="brief" name="since" value="yesterday">`, `value="py"`, "since: want a time"} {
		require.Contains(t, w.Body.String(), s)
	}
}

// TestOutputIsObserved: whoever looks at an execution, or stores what it wrote, is an observer of it, with the viewer's token.
func TestOutputIsObserved(t *testing.T) {
	t.Parallel()
	var asked []string
	h := of(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.String()+" "+r.Header.Get("X-Drover-Token"))
		_, _ = w.Write([]byte("gr\xc3"))
		_, _ = w.Write([]byte("\xbcn"))
	}))
	w := ask(t, h, "GET", "/ui/executions/x1/output?stream=stdout", "good", nil)
	require.Equal(t, "grün", w.Body.String())
	require.Equal(t, "application/octet-stream", w.Header().Get("Content-Type"))
	require.Contains(t, w.Header().Get("Content-Disposition"), "attachment")
	require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
	_ = ask(t, h, "GET", "/ui/executions/x1/live?stdout=5&stderr=7&observe=false&mode=text", "good", nil)
	_ = ask(t, h, "GET", "/ui/executions/x1/timeline", "good", nil)
	require.Equal(t, []string{
		"/v1/execution/x1/output?observe=true&stream=stdout good", "/v1/execution/x1/attach?mode=binary&observe=true&stderr=7&stdout=5 good",
		"/v1/execution/x1/timeline good",
	}, slices.DeleteFunc(asked, func(s string) bool { return strings.HasPrefix(s, "/v1/rights") }))
	api := aHerd(t)
	delete(api, "/v1/execution/x2/output")
	body := ask(t, of(api), "GET", "/ui/executions/x2", "good", nil).Body.String()
	require.Contains(t, body, "Your token may not do this")
	require.Contains(t, body, `<dd class="bad">137</dd>`)
}

// TestSocketsAreBounded: each is one of a viewer's open pages.
func TestSocketsAreBounded(t *testing.T) {
	t.Parallel()
	opened, let := make(chan struct{}), make(chan struct{})
	h := of(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/attach") {
			opened <- struct{}{}
			<-let
		}
	}))
	var all sync.WaitGroup
	for range viewers.MostPages {
		all.Go(func() { _ = ask(t, h, "GET", "/ui/executions/x1/live", "good", nil) })
		<-opened
	}
	require.Equal(t, http.StatusTooManyRequests, ask(t, h, "GET", "/ui/executions/x1/live", "good", nil).Code)
	close(let)
	all.Wait()
}

// TestCasts: what is kept of both streams is one asciicast, once the execution ended.
func TestCasts(t *testing.T) {
	t.Parallel()
	api := aHerd(t)
	api["/v1/execution/x2/output"] = fixedAnswer("ab\n")
	api["/v1/execution/x2/timeline"] = fixedAnswer(`{"marks": [{"at": 1000000000, "stream": "stdout", "end": 1}], "ended": 2000000000}`)
	w := ask(t, of(api), "GET", "/ui/executions/x2/cast", "good", nil)
	require.Equal(t, "application/x-asciicast", w.Header().Get("Content-Type"))
	require.Contains(t, w.Header().Get("Content-Disposition"), "execution.cast")
	require.Contains(t, w.Body.String(), "[1,\"o\",\"a\"]\n[2,\"o\",\"b\\r\\n\"]\n[2,\"o\",\"ab\\r\\n\"]\n")
	api["/v1/execution/x1/timeline"] = fixedAnswer(`{}`)
	require.Equal(t, http.StatusConflict, ask(t, of(api), "GET", "/ui/executions/x1/cast", "good", nil).Code)
}

func fixedAnswer(body string) struct {
	status int
	body   string
} {
	return struct {
		status int
		body   string
	}{http.StatusOK, body}
}

// TestFilesOfARunner: folders and files with hostile names and bytes, and uploads, each of which goes to the API as it is.
func TestFilesOfARunner(t *testing.T) {
	t.Parallel()
	var put []string
	names := `[{"path": "bb", "type": "-", "size": 3, "owner": "me"}, {"path": "a", "type": "d"},
		{"path": "?", "pathBase64": "_yc=", "type": "-"}, {"path": "<img src=x onerror=alert(1)>", "type": "l", "linkTarget": "<b>"}]`
	h := of(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPut:
			content, err := io.ReadAll(r.Body)
			put = append(put, fmt.Sprintf("%s %s %v", r.URL.String(), content, err))
		case strings.HasSuffix(r.URL.Path, "/files"):
			_, _ = io.WriteString(w, names)
		case r.URL.Query().Get("path") == "binary":
			_, _ = io.WriteString(w, "a\x00b")
		case strings.HasSuffix(r.URL.Path, "/file"):
			_, _ = io.WriteString(w, hostile+strings.Repeat("ü", 64<<10))
		default:
			_, _ = io.WriteString(w, `{"id": "r1"}`)
		}
	}))
	page := func(path string) string {
		w := ask(t, h, "GET", path, "good", nil)
		require.Equal(t, http.StatusOK, w.Code, path)
		inert(t, w.Body.String())
		return w.Body.String()
	}
	body := page("/ui/runners/r1/files?path=x/y")
	for _, holds := range []string{
		`href="/ui/runners/r1/files?path=x%2Fy%2Fa"`, `href="/ui/runners/r1/files?path=x%2Fy%2Fbb&amp;text=1"`,
		`href="/ui/runners/r1/files?pathBase64=eC95L_8n&amp;text=1"`, `href="/ui/runners/r1/files?path=x"`,
	} {
		require.Contains(t, body, holds)
	}
	require.Less(t, strings.Index(body, "a/</bdi>"), strings.Index(body, ">bb<"), "folders first")
	require.Contains(t, page("/ui/runners/r1/files?path=text&text=1"), "The first 64.0 KiB are shown")
	require.Contains(t, page("/ui/runners/r1/files?path=binary&text=1"), "This is no text")
	require.Contains(t, page("/ui/runners/r1/terminal"), `data-wire="runner"`)
	w := ask(t, h, "GET", "/ui/runners/r1/terminal", "good", nil)
	require.Contains(t, w.Header().Get("Content-Security-Policy"), "script-src 'self'; style-src 'self' 'unsafe-inline'")
	w = ask(t, h, "GET", "/ui/runners/r1/files/raw?path=a/b", "good", nil)
	require.Equal(t, "attachment; filename=b", w.Header().Get("Content-Disposition"))

	form := "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"../../etc/a b\"\r\n\r\none\r\n" +
		"--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"c\"\r\n\r\n\r\n--x--\r\n"
	r := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost:4646/ui/runners/r1/files?path=x", strings.NewReader(form))
	r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	r.Header.Set("Origin", "http://localhost:4646")
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, r)
	require.Equal(t, http.StatusSeeOther, answer.Code)
	require.Equal(t, []string{"/v1/runner/r1/file?path=x%2Fa+b one <nil>", "/v1/runner/r1/file?path=x%2Fc  <nil>"}, put)
}

// TestTheHerdIsSteered: the size of a pool, what a runner may be idle, its release, and signals go to the API as the viewer, once
// the viewer has confirmed what ends something. What was typed wrongly is there still, and nothing is offered to who may only
// look.
func TestTheHerdIsSteered(t *testing.T) {
	t.Parallel()
	herd := aHerd(t)
	var sent []string
	limited := `{"namespace": "team", "capabilities": ["read-runner"]}`
	may := `{"management": true, "namespace": "team"}`
	h := of(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/rights":
			_, _ = io.WriteString(w, may)
		case r.Method == http.MethodGet:
			herd.ServeHTTP(w, r)
		default:
			body, err := io.ReadAll(r.Body)
			sent = append(sent, fmt.Sprintf("%s %s %s %v", r.Method, r.URL.Path, body, err))
		}
	}))
	for _, one := range []struct {
		path   string
		form   url.Values
		status int
		says   string // on the page; where it leads to
		sends  string
	}{
		{
			"/ui/environments/team~py/size",
			url.Values{"size": {"12"}, "was": {"3"}},
			http.StatusSeeOther, "/ui/environments/team~py",
			`POST /v1/environment/team~py/size {"size":12,"was":3}`,
		},
		{"/ui/environments/team~py/size", url.Values{"size": {"<b>"}}, http.StatusBadRequest, `value="&lt;b&gt;"`, ""},
		{"/ui/environments/team~py/size", url.Values{"size": {"-1"}}, http.StatusBadRequest, "0 or more", ""},
		{"/ui/environments/team~py/kill", nil, http.StatusNotFound, "no such action", ""},
		{
			"/ui/runners/team~py-a1/extend",
			url.Values{"idle": {"2h"}},
			http.StatusSeeOther, "/ui/runners/team~py-a1",
			`PATCH /v1/runner/team~py-a1 {"idleTimeout":7200000000000}`,
		},
		{"/ui/runners/team~py-a1/extend", url.Values{"idle": {"soon"}}, http.StatusBadRequest, `value="soon"`, ""},
		{"/ui/runners/team~py-a1/release", nil, http.StatusOK, "<strong><bdi>team~py-a1</bdi></strong>", ""},
		{"/ui/runners/team~py-a1/release", url.Values{"sure": {"1"}}, http.StatusSeeOther, "/ui/runners", "DELETE /v1/runner/team~py-a1"},
		{
			"/ui/executions/x1/interrupt", nil, http.StatusSeeOther, "/ui/executions/x1",
			`POST /v1/execution/x1/signal {"signal":"SIGINT"}`,
		},
		{"/ui/executions/x1/kill", nil, http.StatusOK, "with all that it started?", ""},
		{"/ui/executions/x1/kill", url.Values{"sure": {"1"}}, http.StatusSeeOther, "/ui/executions/x1", "DELETE /v1/execution/x1"},
	} {
		sent = nil
		w := ask(t, h, "POST", one.path, "good", one.form)
		require.Equal(t, one.status, w.Code, "%s: %s", one.path, w.Body)
		inert(t, w.Body.String())
		if one.status == http.StatusSeeOther {
			require.Equal(t, one.says, w.Header().Get("Location"))
		} else {
			require.Contains(t, w.Body.String(), one.says, one.path)
		}
		if one.sends == "" {
			require.Empty(t, sent, one.path)
			continue
		}
		require.Len(t, sent, 1)
		require.True(t, strings.HasPrefix(sent[0], one.sends), sent[0])
	}
	pages := []string{"/ui/environments/team~py", "/ui/runners/team~py-a1", "/ui/executions/x1"}
	for _, path := range pages {
		require.Contains(t, ask(t, h, "GET", path, "good", nil).Body.String(), `method="post" action="`+path)
	}
	may = limited
	for _, path := range append(pages, "/ui/runners/team~py-a1/files") {
		body := ask(t, h, "GET", path, "good", nil).Body.String()
		require.NotContains(t, body, `method="post" action="`+path, path)
		require.NotContains(t, body, "/terminal", path)
		require.NotContains(t, body, "/output?", path)
	}
}
