package nomad_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad"
	"github.com/drover-project/drover/internal/httpapi/nomad/jobs"
)

// The transcripts in testdata hold one exchange a section: the name is the request line, "> " lines are its body,
// the rest is the answer. A name that ends in " !" keeps the answer's head only (its body changes). Rewrite with
// go test ./internal/httpapi/nomad -run Transcripts -update.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var mu sync.Mutex
	hit := map[string]bool{}
	// These answer without an end, or to a websocket; exec_test.go and streams_test.go try them.
	for _, p := range []string{
		"GET /v1/event/stream", "GET /v1/agent/monitor", "GET /v1/client/allocation/{id}/exec", "GET /v1/job/{id}/action",
		"GET /v1/client/fs/logs/{id}",
		"GET /v1/client/fs/stream/{id}", "GET /v1/agent/pprof/profile", "GET /v1/agent/pprof/trace",
	} {
		hit[p] = true
	}
	for _, file := range files {
		w := newWorld(t, func(c *nomad.Config) {
			c.ParseHCL = func(_ context.Context, hcl, variables string, canonicalize bool) (json.RawMessage, error) {
				if !strings.HasPrefix(hcl, "job") {
					return nil, drover.Errorf(drover.Invalid, "job.hcl:1,1-4: Unsupported block type")
				}
				j := &drover.Job{ID: "parsed", Name: variables}
				if canonicalize {
					j.Canonicalize()
					return json.Marshal(j)
				}
				return json.Marshal(jobs.OnlySet(j))
			}
		})
		w.handler = httpapi.Handler(httpapi.Config{
			Logger: w.cfg.Logger, Clock: clock.Wall{}, MaxBody: 1 << 10,
			Observe: func(pattern string, _ int, _ time.Duration) { mu.Lock(); hit[pattern] = true; mu.Unlock() },
		}, nomad.New(w.cfg))
		archive, err := txtar.ParseFile(file)
		require.NoError(t, err)
		for i, section := range archive.Files {
			got := w.exchange(section)
			if *update {
				archive.Files[i].Data = got
				continue
			}
			require.Equal(t, string(section.Data), string(got), "%s: %s", file, section.Name)
		}
		if *update {
			require.NoError(t, os.WriteFile(file, txtar.Format(archive), 0o644))
		}
	}
	var missing []string
	for _, r := range nomad.New(nomad.Config{Pprof: true}).Routes() {
		if !hit[r.Pattern] {
			missing = append(missing, r.Pattern)
		}
	}
	slices.Sort(missing)
	require.Empty(t, missing, "routes without a transcript")
}

// exchange performs a section's request and renders request body and answer.
func (w *world) exchange(section txtar.File) []byte {
	w.t.Helper()
	name, headOnly := strings.CutSuffix(section.Name, " !")
	method, path, ok := strings.Cut(name, " ")
	require.True(w.t, ok, name)
	var out bytes.Buffer
	var body strings.Builder
	for line := range strings.Lines(string(section.Data)) {
		if text, ok := strings.CutPrefix(line, "> "); ok {
			out.WriteString(line)
			body.WriteString(text)
		}
	}
	rec := w.do(method, path, strings.TrimSuffix(body.String(), "\n"))
	h := rec.Header()
	fmt.Fprintf(&out, "%d %s", rec.Code, h.Get("Content-Type"))
	for _, key := range []string{"X-Nomad-Index", "X-Nomad-NextToken", "Allow"} {
		if v := h.Get(key); v != "" {
			fmt.Fprintf(&out, " %s=%s", key, v)
		}
	}
	out.WriteByte('\n')
	if text := rec.Body.Bytes(); !headOnly && len(text) > 0 {
		if h.Get("Content-Type") == "application/json" {
			var indented bytes.Buffer
			require.NoError(w.t, json.Indent(&indented, text, "", " "), name)
			text = indented.Bytes()
		}
		out.Write(bytes.TrimRight(text, "\n"))
		out.WriteByte('\n')
	}
	return out.Bytes()
}

// Every refusal has a reason, and changes nothing.
func TestBadInputChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.store.Index()
	for _, c := range []struct{ method, path, body, says string }{
		{"PUT", "/v1/jobs", `{`, "malformed JSON"},
		{"PUT", "/v1/jobs", `{"Job":{"ID":7}}`, "Job.ID: got a JSON number"},
		{"PUT", "/v1/jobs", `{"Job":{"ID":"x","Priority":"high"}}`, "Job.Priority"},
		{"PUT", "/v1/jobs", `{"Job":{"ID":"x","TaskGroups":[{"Count":1e99}]}}`, "Job.TaskGroups.Count"},
		{"PUT", "/v1/jobs", `{"Job":{"ID":"x","TaskGroups":{"a":1}}}`, "Job.TaskGroups"},
		{"PUT", "/v1/jobs", `{"Job":{"ID":"x","Namespace":"*","TaskGroups":[]}}`, "Namespace"},
		{"PUT", "/v1/jobs", `{"Job":{"ID":"x"},"EvalPriority":40000}`, "EvalPriority"},
		{"PUT", "/v1/jobs", `{"Job":{"ID":"x"}}`, "job validation"},
		{"PUT", "/v1/job/a", `{"Job":{"ID":"b"}}`, "does not match"},
		{"PUT", "/v1/job/web/scale", `{"Count":-1,"Target":{"Group":"g"}}`, "Count"},
		{"PUT", "/v1/job/web/scale", `{"Count":1}`, "missing task group"},
		{"PUT", "/v1/job/web/dispatch", `{"Payload":"!!!"}`, "base64"},
		{"GET", "/v1/jobs?index=-1", "", "index"},
		{"GET", "/v1/jobs?wait=soon", "", "wait"},
		{"GET", "/v1/jobs?per_page=-5", "", "per_page"},
		{"GET", "/v1/jobs?filter=" + "Type+%3D%3D", "", "filter expression"},
		{"GET", "/v1/jobs?filter=Nothing+%3D%3D+%22x%22", "", "filter"},
		{"GET", "/v1/allocations?next_token=x", "", "next_token"},
		{"GET", "/v1/allocations?resources=perhaps", "", "resources"},
		{"DELETE", "/v1/job/web?purge=perhaps", "", "purge"},
		{"DELETE", "/v1/job/web?global=perhaps", "", "global"},
		{"DELETE", "/v1/job/web?eval_priority=40000", "", "eval_priority"},
		{"PUT", "/v1/node/" + nodeID + "/eligibility", `{"Eligibility":"maybe"}`, "maybe"},
		{"PUT", "/v1/node/" + nodeID + "/drain", `{"DrainSpec":{"Deadline":"soon"}}`, "DrainSpec.Deadline"},
		{"PUT", "/v1/operator/scheduler/configuration", `{"SchedulerAlgorithm":"magic"}`, "magic"},
		{"PUT", "/v1/search", `{"Prefix":"x","Context":"wat"}`, "invalid context"},
		{"GET", "/v1/client/fs/readat/" + allocID + "?path=x&offset=-2", "", "offset"},
		{"GET", "/v1/client/fs/cat/" + allocID + "?path=../../x", "", "leaves"},
	} {
		rec := w.do(c.method, c.path, c.body)
		require.Equal(t, http.StatusBadRequest, rec.Code, "%s %s: %s", c.method, c.path, rec.Body)
		require.Contains(t, rec.Body.String(), c.says, "%s %s", c.method, c.path)
		require.Equal(t, "text/plain; charset=utf-8", rec.Header().Get("Content-Type"))
	}
	require.Equal(t, before, w.store.Index())
	require.Empty(t, w.intake.calls)
}
