package poseidon_test

import (
	"context"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exec/exectest"
	"github.com/drover-project/drover/internal/exec/facetest"
	"github.com/drover-project/drover/internal/exec/runner"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/poseidon"
)

var update = flag.Bool("update", false, "write the transcripts anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is the face over the real execution service over an in-memory control and node.
type world struct {
	t       *testing.T
	control *exectest.Control
	runners *runner.Service
	server  *httptest.Server
	client  *http.Client
	names   map[string]string // real ids by their name in transcripts
}

func newWorld(t *testing.T, cfg poseidon.Config, token string) *world {
	t.Helper()
	guard, err := httpapi.NewGuard(httpapi.GuardConfig{Hosts: []string{"poseidon.example.com"}})
	require.NoError(t, err)
	shared := httpapi.Config{Guard: guard, Resolver: httpapi.OneToken(token)}
	served := facetest.Serve(t, shared, func(s *facetest.World) httpapi.Face {
		return poseidon.New(cfg, poseidon.Deps{
			Environments: s.Runners, Runners: s.Runners, Executions: s.Executions, Templates: foreign{}, Clock: clock.Wall{}, Log: s.Log,
		})
	}, nil)
	return &world{
		t: t, control: served.Control, runners: served.Runners, server: served.Server, client: served.Server.Client(),
		names: map[string]string{},
	}
}

// foreign has one template, which stays.
type foreign struct{}

func (foreign) Templates(context.Context) []execution.Environment {
	return []execution.Environment{{ID: "42", Image: "host", PoolSize: 1, CPU: 20, MemoryMaxMB: 100}}
}

func (foreign) RemoveTemplate(context.Context, string) error { return nil }

// do sends a request; header lines are "Name: value".
func (w *world) do(method, path, body string, headers ...string) (*http.Response, string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, w.server.URL+path, strings.NewReader(body))
	require.NoError(w.t, err)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			req.Host = value
		}
		req.Header.Set(name, value)
	}
	res, err := w.client.Do(req)
	require.NoError(w.t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(w.t, err)
	return res, string(text)
}

// transcript plays the requests of a file ("> METHOD path", header lines "> Name: value", body lines) and compares
// the answers ("< status content-type", body). Ids are named as they appear.
func (w *world) transcript(name string) {
	w.t.Helper()
	file := filepath.Join("testdata", name+".txt")
	text, err := os.ReadFile(file)
	require.NoError(w.t, err)
	var got strings.Builder
	for block := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
		w.play(block, &got)
	}
	if *update {
		require.NoError(w.t, os.WriteFile(file, []byte(got.String()), 0o600))
		return
	}
	require.Empty(w.t, cmp.Diff(string(text), got.String()))
}

func (w *world) play(block string, got *strings.Builder) {
	var method, path, body string
	var headers []string
	for line := range strings.SplitSeq(block, "\n") {
		switch {
		case strings.HasPrefix(line, "#"):
			got.WriteString(line + "\n")
		case strings.HasPrefix(line, "> ") && method == "":
			method, path, _ = strings.Cut(line[2:], " ")
			got.WriteString(line + "\n")
		case strings.HasPrefix(line, "> ") && strings.Contains(line, ": ") && !strings.HasPrefix(line, "> {"):
			headers = append(headers, line[2:])
			got.WriteString(line + "\n")
		case strings.HasPrefix(line, "> "):
			body = line[2:]
			got.WriteString(line + "\n")
		}
	}
	if method != "" {
		res, answer := w.do(method, w.real(path), body, headers...)
		got.WriteString(strings.TrimSpace("< "+res.Status+" "+res.Header.Get("Content-Type")) + "\n")
		if answer != "" {
			got.WriteString("< " + w.named(answer) + "\n")
		}
	}
	got.WriteString("\n")
	_ = w.runners // events are followed beside
	exectest.AwaitIndex(w.t, w.control, w.runners)
}

var uuid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)

func (w *world) named(text string) string {
	text = strings.ReplaceAll(text, strings.TrimPrefix(w.server.URL, "http://"), "HOST")
	return uuid.ReplaceAllStringFunc(text, func(real string) string {
		for name, known := range w.names {
			if known == real {
				return name
			}
		}
		name := "ID" + string(rune('A'+len(w.names)))
		w.names[name] = real
		return name
	})
}

func (w *world) real(text string) string {
	for name, real := range w.names {
		text = strings.ReplaceAll(text, name, real)
	}
	return text
}

// claim makes environment 1 and claims a runner of it.
func (w *world) claim() string {
	w.t.Helper()
	res, _ := w.do("PUT", "/api/v1/execution-environments/1", `{"image":"host","prewarmingPoolSize":2,"cpuLimit":20,"memoryLimit":100}`)
	require.Equal(w.t, http.StatusCreated, res.StatusCode)
	exectest.AwaitWarm(w.t, w.runners, 2)
	_, body := w.do("POST", "/api/v1/runners", `{"executionEnvironmentId":1,"inactivityTimeout":60}`)
	return between(w.t, body, `{"runnerId":"`, `"`)
}

func between(t *testing.T, text, before, after string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, before)
	require.True(t, ok, text)
	found, _, ok := strings.Cut(rest, after)
	require.True(t, ok, text)
	return found
}

const soon = time.Minute
