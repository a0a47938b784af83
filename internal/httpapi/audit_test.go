package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi/throttle"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/policy"
)

// auditLine is a line of the record, as far as these tests look at it.
type auditLine struct {
	Payload struct {
		Stage string
		Auth  struct {
			Accessor string `json:"accessor_id"`
		}
		Request struct {
			ID, Operation, Endpoint, Route, Object, Class string
			Claimed                                       string `json:"claimed_id"`
			Stream                                        bool
			Namespace                                     struct{ ID string }
			Meta                                          struct {
				Forwarded string `json:"forwarded_for"`
			} `json:"request_meta"`
			Node struct{ Via string } `json:"node_meta"`
		}
		Decision struct {
			Allowed bool
			Reason  string
		}
		Response *struct {
			Status int `json:"status_code"`
		}
	}
}

// recorded is a record whose lines stop returns. Trusted callers are those of 192.0.2.0/24, as httptest's are.
func recorded(t testing.TB, path string, trusted ...netip.Prefix) (l *audit.Log, stop func() []auditLine) {
	t.Helper()
	d := audit.Deps{Clock: clock.Wall{}, IDs: id.Random{}, Log: quiet()}
	if path == "" {
		path = filepath.Join(t.TempDir(), "audit.log")
	}
	place := audit.Place{Name: "s", Enforced: true, File: &audit.File{Path: path}}
	s, err := audit.Open(t.Context(), place, d)
	require.NoError(t, err)
	l = audit.New(audit.Config{Node: "n", Trusted: trusted}, d, s)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = l.Run(ctx) }() // ends with cancel
	end := sync.OnceFunc(func() { cancel(); <-done; l.Close() })
	t.Cleanup(end)
	return l, func() (out []auditLine) {
		end()
		f, err := os.Open(path)
		require.NoError(t, err)
		defer f.Close()
		for r := bufio.NewScanner(f); r.Scan(); {
			var w auditLine
			require.NoError(t, json.Unmarshal(r.Bytes(), &w), r.Text())
			if w.Payload.Stage != "" {
				out = append(out, w)
			}
		}
		return out
	}
}

// auditedFace has a route of each kind.
func auditedFace(done *int) testFace {
	acts := func(w http.ResponseWriter, r *http.Request) error {
		*done++
		About(r.Context(), "of the body")
		if err := Allow(r.Context(), r.URL.Query().Get("in"), policy.SubmitJob); err != nil {
			return err
		}
		return WriteJSON(w, r, http.StatusOK, "done")
	}
	late := func(_ http.ResponseWriter, r *http.Request) error {
		if err := Identify(r.Context(), r.URL.Query().Get("t")); err != nil {
			return err
		}
		*done++
		return nil
	}
	return testFace{
		{Pattern: "PUT /v1/jobs", Need: OfObject(policy.SubmitJob), Handle: acts},
		{Pattern: "DELETE /v1/job/{id}", Need: Management, Handle: answers},
		{Pattern: "GET /v1/jobs", Need: InDefault(policy.ReadJob), Handle: answers},
		{Pattern: "GET /v1/logs", Need: InDefault(policy.ReadLogs), Handle: answers},
		{Pattern: "GET /v1/var/{path...}", Need: Filtered("what it may"), Handle: answers},
		{Pattern: "GET /v1/exec", Need: InDefault(policy.Execute), Stream: true, Handle: func(w http.ResponseWriter, _ *http.Request) error {
			*done++
			_, err := io.WriteString(w, "streamed")
			return err
		}},
		{Pattern: "GET /v1/late", Need: InDefault(policy.Execute).InHandshake(), Stream: true, Handle: late},
		{Pattern: "POST /v1/broken", Need: Nothing, Handle: func(http.ResponseWriter, *http.Request) error {
			return drover.Errorf(drover.Invalid, "line 3: password = \"s3cret\"")
		}},
		{Pattern: "POST /v1/panics", Need: Nothing, Handle: func(http.ResponseWriter, *http.Request) error { panic("x") }},
	}
}

const writerRules = `namespace "default" { capabilities = ["submit-job", "read-job", "read-logs", "execute"] }`

func auditedHandler(t *testing.T, l *audit.Log, done *int) http.Handler {
	t.Helper()
	cfg := testConfig()
	cfg.Audit = l
	cfg.Resolver = newTokens(t, map[acl.Secret]string{"": "", "writer": writerRules})
	return Handler(cfg, auditedFace(done))
}

// TestReadsOfAllNamespacesAndRefusalsByAddressAreRecorded: a read of secrets of every namespace says so, and who asks too often is told
// when to come back, which is recorded with the reason.
func TestReadsOfAllNamespacesAndRefusalsByAddressAreRecorded(t *testing.T) {
	t.Parallel()
	l, stop := recorded(t, "")
	cfg := testConfig()
	cfg.Audit, cfg.Limits = l, &Limits{Addresses: throttle.New[netip.Addr](0.25, 1)}
	cfg.Resolver = newTokens(t, map[acl.Secret]string{"": "", "writer": writerRules})
	h := Handler(cfg, auditedFace(new(int)))
	ask := func() *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/v1/var/a?namespace=*", nil)
		r.Host, r.RemoteAddr = "127.0.0.1", "10.0.0.1:7"
		r.Header.Set("X-Nomad-Token", "writer")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	require.Equal(t, http.StatusOK, ask().Code)
	w := ask()
	require.Equal(t, http.StatusTooManyRequests, w.Code)
	require.Equal(t, "4", w.Header().Get("Retry-After"))
	lines := stop()
	require.Len(t, lines, 3)
	for _, line := range lines {
		require.Equal(t, "*", line.Payload.Request.Namespace.ID)
	}
	last := lines[2].Payload
	require.Equal(t, []any{audit.Complete, false, http.StatusTooManyRequests}, []any{last.Stage, last.Decision.Allowed, last.Response.Status})
	require.Contains(t, last.Decision.Reason, "too many requests of the address 10.0.0.1 (limits.http_requests_per_address)")
}

func TestWhatIsRecorded(t *testing.T) {
	t.Parallel()
	type want struct {
		stage, class, who, object, namespace string
		allowed                              bool
		status                               int
	}
	received, complete := audit.Received, audit.Complete
	for _, c := range []struct {
		method, path, token string
		want                []want
	}{
		{"PUT", "/v1/jobs?in=default", "writer", []want{
			{received, "change", "writer", "", "default", true, 0}, {complete, "change", "writer", "of the body", "default", true, 200},
		}},
		{"PUT", "/v1/jobs?in=other", "writer", []want{
			{received, "change", "writer", "", "default", true, 0}, {complete, "change", "writer", "of the body", "other", false, 403},
		}},
		{"PUT", "/v1/jobs?in=default", "wrong", []want{{complete, "change", "", "", "default", false, 403}}},
		{"DELETE", "/v1/job/x?namespace=n", "writer", []want{{complete, "change", "writer", "x", "n", false, 403}}},
		{"GET", "/v1/jobs", "writer", nil},
		{"GET", "/v1/jobs", "wrong", []want{{complete, "read", "", "", "default", false, 403}}},
		{"GET", "/v1/logs", "writer", []want{
			{received, "secret", "writer", "", "default", true, 0}, {complete, "secret", "writer", "", "default", true, 200},
		}},
		{"GET", "/v1/var/a/writer", "writer", []want{
			{received, "secret", "writer", "a/<token>", "default", true, 0}, {complete, "secret", "writer", "a/<token>", "default", true, 200},
		}},
		{"GET", "/v1/exec", "writer", []want{
			{received, "change", "writer", "", "default", true, 0}, {complete, "change", "writer", "", "default", true, 200},
		}},
		{"GET", "/v1/late?t=writer", "", []want{
			{received, "change", "writer", "", "default", true, 0}, {complete, "change", "writer", "", "default", true, 200},
		}},
		{"GET", "/v1/late?t=wrong", "", []want{{complete, "change", "", "", "default", false, 403}}},
		{"POST", "/v1/broken", "", []want{{received, "change", "", "", "default", true, 0}, {complete, "change", "", "", "default", true, 400}}},
		{"POST", "/v1/panics", "", []want{{received, "change", "", "", "default", true, 0}, {complete, "change", "", "", "default", true, 500}}},
		{"PATCH", "/v1/jobs", "writer", nil},
	} {
		t.Run(c.method+c.path+c.token, func(t *testing.T) {
			t.Parallel()
			var done int
			l, stop := recorded(t, "")
			w := do(t, auditedHandler(t, l, &done), c.method, c.path, "", "X-Nomad-Token", c.token)
			var got []want
			for _, line := range stop() {
				p := line.Payload
				one := want{p.Stage, p.Request.Class, p.Auth.Accessor, p.Request.Object, p.Request.Namespace.ID, p.Decision.Allowed, 0}
				if p.Response != nil {
					one.status = p.Response.Status
				}
				got = append(got, one)
				require.Equal(t, w.Header().Get(RequestIDHeader), p.Request.ID)
				require.NotContains(t, p.Decision.Reason, "s3cret")
				require.Equal(t, !p.Decision.Allowed, p.Decision.Reason != "")
			}
			require.Equal(t, c.want, got)
		})
	}
}

// Who is not trusted does not choose the id. An agent that sent a request on does, as do callers that the configuration names.
func TestWhoseRequestIDsAreBelieved(t *testing.T) {
	t.Parallel()
	near := netip.MustParsePrefix("192.0.2.0/24")
	for name, c := range map[string]struct {
		trusted []netip.Prefix
		hop     bool
		id      string
		taken   bool
	}{
		"stranger": {nil, false, "forged", false}, "proxy": {[]netip.Prefix{near}, false, "good", true},
		"agent": {nil, true, "good", true}, "garbage": {[]netip.Prefix{near}, false, "a b\"", false},
		"long": {nil, true, strings.Repeat("x", 65), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var done int
			l, stop := recorded(t, "", c.trusted...)
			r := httptest.NewRequest("PUT", "/v1/jobs?in=default", nil)
			r.Host = "127.0.0.1"
			if c.hop {
				r = r.WithContext(WithHop(r.Context(), Hop{From: "other", Way: FromServer}))
			}
			r.Header.Set("X-Nomad-Token", "writer")
			r.Header.Set(RequestIDHeader, c.id)
			r.Header.Set("X-Forwarded-For", "198.51.100.7")
			w := httptest.NewRecorder()
			auditedHandler(t, l, &done).ServeHTTP(w, r)
			lines := stop()
			require.Len(t, lines, 2)
			require.Len(t, w.Header().Values(RequestIDHeader), 1)
			p := lines[1].Payload.Request
			require.Equal(t, c.taken, p.ID == c.id)
			require.Equal(t, c.taken, p.Claimed == "")
			require.Equal(t, c.hop, p.Node.Via == "other")
			require.Equal(t, c.hop || c.trusted != nil, p.Meta.Forwarded != "")
		})
	}
}

// What cannot be recorded is not carried out; plain reads are.
func TestWhatCannotBeRecordedIsNotCarriedOut(t *testing.T) {
	t.Parallel()
	var done int
	l, stop := recorded(t, "")
	stop() // from now on the sink takes nothing
	h := auditedHandler(t, l, &done)
	for path, status := range map[string]int{
		"PUT /v1/jobs?in=default": 503, "GET /v1/logs": 503, "GET /v1/exec": 503, "GET /v1/late?t=writer": 503, "GET /v1/jobs": 200,
		"PUT /v1/jobs?token=wrong&in=x": 503,
	} {
		method, path, _ := strings.Cut(path, " ")
		w := do(t, h, method, path, "", "X-Nomad-Token", "writer")
		require.Equal(t, status, w.Code, path)
		if status == 503 {
			require.Contains(t, w.Body.String(), `the request cannot be recorded, so it was not carried out: audit sink "s"`)
		}
	}
	require.Equal(t, 403, do(t, h, "PUT", "/v1/jobs", "", "X-Nomad-Token", "wrong").Code, "who is refused stays so")
	require.Zero(t, done)
}

// elsewhere is a relay that has another agent answer.
type elsewhere struct{}

func (elsewhere) Elsewhere(w http.ResponseWriter, r *http.Request, _ Where) (bool, error) {
	w.Header().Add(RequestIDHeader, r.Header.Get(RequestIDHeader))
	w.WriteHeader(http.StatusAccepted)
	return true, nil
}

// Who sends a request on does not decide about it: the agent that does records it, under the id that it was given.
func TestWhatIsSentOnIsRecordedElsewhere(t *testing.T) {
	t.Parallel()
	l, stop := recorded(t, "")
	cfg := testConfig()
	cfg.Audit, cfg.Relay = l, elsewhere{}
	h := Handler(cfg, testFace{{Pattern: "PUT /v1/jobs", Need: Management, Where: Leader, Handle: answers}})
	w := do(t, h, "PUT", "/v1/jobs", "")
	require.Equal(t, http.StatusAccepted, w.Code)
	require.Len(t, w.Header().Values(RequestIDHeader), 1)
	require.NotEmpty(t, w.Header().Get(RequestIDHeader))
	require.Empty(t, stop())
}

// A page of another origin is refused before all routes, and recorded.
func TestWhatTheGuardRefusesIsRecorded(t *testing.T) {
	t.Parallel()
	var done int
	l, stop := recorded(t, "")
	require.Equal(t, 403, do(t, auditedHandler(t, l, &done), "DELETE", "/v1/job/x", "", "Origin", "http://evil.example").Code)
	lines := stop()
	require.Len(t, lines, 1)
	require.Contains(t, lines[0].Payload.Decision.Reason, "a web page of http://evil.example")
}

// BenchmarkAudit is a claim's route with the record off, with plain reads that are not recorded, and with lines that are waited for.
func BenchmarkAudit(b *testing.B) {
	for _, c := range []struct {
		name, method string
		on           bool
	}{{"off", "POST", false}, {"on, a read", "GET", true}, {"on, a change", "POST", true}} {
		b.Run(c.name, func(b *testing.B) {
			e, r := deciding(b, InDefault(policy.ClaimRunner))
			if e.route.Pattern = "/v1/runners"; c.on {
				e.Audit, _ = recorded(b, "")
			}
			if r.Method = c.method; c.method == "GET" {
				e.route.Need = InDefault(policy.ReadJob)
			}
			b.ReportAllocs()
			for b.Loop() {
				e.serve(&silent{http.Header{}}, r)
			}
		})
	}
}
