package web

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
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
	api := fixed{}
	for path, v := range map[string]any{
		"/v1/environment/team~py":      execution.Environment{ID: "py", Namespace: "team", Image: hostile},
		"/v1/environment/team~py/pool": execution.PoolStatus{Size: 3, Warm: 1, Waiting: 2, LastError: hostile},
		"/v1/runners":                  []execution.Runner{warm, claimed},
		"/v1/runner/team~py-a1":        claimed, "/v1/runner/team~py-a1/executions": []execution.Execution{ended, runs},
		"/v1/execution/x1": runs, "/v1/execution/x2": ended,
	} {
		api[path] = struct {
			status int
			body   string
		}{http.StatusOK, say(v)}
	}
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
			text, "1 / 3", `<a href="/ui/runners/team~py-a1">`, `<a href="/ui/allocations/b1234567890">`, `data-live="Environment Runner"`,
		},
		"/ui/runners": {`<a href="/ui/environments/team~py">`, "student=" + text, `<span class="status ok">warm</span>`},
		"/ui/runners/team~py-a1": {
			`<a href="/ui/executions/x1">`, `<span class="status prog">runs</span>`,
			`<a href="/ui/clients/n1234567890">`,
		},
		"/ui/executions":    {`<a href="/ui/executions/x2">`, "sh " + text, `<span class="status bad">killed: out of memory</span>`},
		"/ui/executions/x1": {`id="follow"`, `data-output="/ui/executions/x1/output?stream=stderr"`, `data-every="1"`, "execution.js"},
		"/ui/executions/x2": {text, "The first 256.0 KiB are shown", `<dd class="bad">137</dd>`},
	} {
		w := ask(t, h, "GET", path, "good", nil)
		require.Equal(t, http.StatusOK, w.Code, path)
		inert(t, w.Body.String())
		for _, s := range holds {
			require.Contains(t, w.Body.String(), s, path)
		}
	}
	body := ask(t, h, "GET", "/ui/executions", "good", nil).Body.String()
	require.Less(t, strings.Index(body, "/ui/executions/x1"), strings.Index(body, "/ui/executions/x2"), "what runs comes first")
	require.NotContains(t, ask(t, h, "GET", "/ui/executions/x2", "good", nil).Body.String(), `id="follow"`)
	require.Equal(t, http.StatusForbidden, ask(t, of(fixed{}), "GET", "/ui/executions/x1", "", nil).Code)
	require.Equal(t, http.StatusForbidden, ask(t, of(fixed{}), "GET", "/ui/executions", "", nil).Code)
}

// TestOutputComesAsItIsWritten: characters are not cut, a program that writes without end ends the page's part of it, and who may not read
// it is told in the page.
func TestOutputComesAsItIsWritten(t *testing.T) {
	t.Parallel()
	var written int
	h := of(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("stream") {
		case "stdout":
			_, _ = w.Write([]byte("gr\xc3"))
			_, _ = w.Write([]byte("\xbcn"))
		case "stderr":
			for {
				n, err := w.Write([]byte(strings.Repeat("x", 1000)))
				if written += n; err != nil {
					panic(http.ErrAbortHandler)
				}
			}
		}
	}))
	w := ask(t, h, "GET", "/ui/executions/x1/output?stream=stdout", "good", nil)
	require.Equal(t, "grün", w.Body.String())
	require.Equal(t, "text/plain; charset=utf-8", w.Header().Get("Content-Type"))
	require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
	require.Len(t, ask(t, h, "GET", "/ui/executions/x1/output?stream=stderr", "good", nil).Body.Bytes(), 1<<20)
	require.Less(t, written, 1<<20+2000, "the program is let go")
	api := aHerd(t)
	delete(api, "/v1/execution/x2/output")
	body := ask(t, of(api), "GET", "/ui/executions/x2", "good", nil).Body.String()
	require.Contains(t, body, "Your token may not do this")
	require.Contains(t, body, `<dd class="bad">137</dd>`)
}
