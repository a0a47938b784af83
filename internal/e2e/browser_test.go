package e2e

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/fleet"
	"github.com/drover-project/drover/internal/httpapi/native"
	"github.com/drover-project/drover/internal/httpapi/nomad"
	"github.com/drover-project/drover/internal/httpapi/poseidon"
	"github.com/drover-project/drover/internal/httpapi/web"
)

//go:embed testdata/page.html
var page []byte

// attempt is what a page reports: how each of its ways to the agent ended, as far as it could see.
type attempt struct {
	Tag  string            `json:"tag"`
	Said map[string]string `json:"said"`
}

// TestNoWebPageDrivesAnAgent has a real browser open pages that send jobs, open websockets, read and have their own name
// resolve to the agent. Of an agent as it comes they get nothing. Of one that is told to let them in they get all,
// which shows that they try what would work.
func TestNoWebPageDrivesAnAgent(t *testing.T) {
	t.Parallel()
	marks := t.TempDir()
	for dir := marks; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755)) // tasks write here
	}
	require.NoError(t, os.Chmod(marks, 0o777)) // as above
	reports := make(chan attempt, 16)
	var frames []string
	var index atomic.Pointer[string] // with all of them
	strangers := strangeSite(t, reports, &index)
	closed := dev(t)
	open := start(t, append([]string{"-dev"}, config(t, "", fmt.Sprintf("allowed_origins = [%q]\nallowed_hosts = [\"*\"]", strangers))...)...)
	allowed := map[string]bool{}
	for name, a := range map[string]*agent{"closed": closed, "open": open} {
		_, _, err := a.nomad().Jobs().Register(rawJob("running", "service", "/bin/sleep", "600"), nil)
		require.NoError(t, err)
		_, _, err = a.nomad().Jobs().Register(rawJob("ended", "batch", "/bin/echo", "kept"), nil)
		require.NoError(t, err)
		told := url.Values{
			"marks": {marks}, "report": {strangers + "/report"}, "agent": {"http://" + a.addr},
			"running": {allocation(t, a.nomad(), "running", "running").ID}, "ended": {allocation(t, a.nomad(), "ended", "complete").ID},
		}
		frame := func(kind, origin, attributes string) {
			told.Set("tag", name+"-"+kind)
			frames = append(frames, fmt.Sprintf("<iframe %s src=%q></iframe>", attributes, origin+"/page?"+told.Encode()))
			allowed[name+"-"+kind] = name == "open" && kind != "null"
		}
		frame("stranger", strangers, "")
		frame("null", strangers, `sandbox="allow-scripts allow-forms"`) // its origin is none
		rebound := reboundSite(t, a.addr)
		told.Set("agent", rebound)
		frame("rebound", rebound, "")
	}
	index.Store(new(strings.Join(frames, "\n")))
	browse(t, strangers+"/")
	for range len(allowed) {
		var got attempt
		select {
		case got = <-reports:
		case <-time.After(60 * time.Second):
			t.Fatal("the browser's pages do not come to an end")
		}
		may, a := allowed[got.Tag], closed
		if strings.HasPrefix(got.Tag, "open") {
			a = open
		}
		// the stranger's has a preflight
		registered := map[string]bool{"fetch": may, "form": may, "json": may && strings.HasSuffix(got.Tag, "rebound")}
		for way, want := range registered {
			_, _, err := a.nomad().Jobs().Info(got.Tag+"-"+way, nil)
			require.Equal(t, want, err == nil, "%s by %s: %v", way, got.Tag, got.Said)
			if want {
				allocation(t, a.nomad(), got.Tag+"-"+way, "complete")
			}
			_, err = os.Stat(filepath.Join(marks, got.Tag+"-"+way))
			require.Equal(t, want, err == nil, "%s by %s", way, got.Tag)
		}
		_, err := os.Stat(filepath.Join(marks, got.Tag+"-websocket"))
		require.Equal(t, may, err == nil, "websocket by %s: %v", got.Tag, got.Said)
		require.Equal(t, may && strings.HasSuffix(got.Tag, "rebound"), strings.Contains(got.Said["read"], "DataDir"), got.Said["read"])
		require.Equal(t, may && strings.HasSuffix(got.Tag, "rebound"), strings.HasPrefix(got.Said["events"], "200"), got.Said["events"])
	}
	ended, _, err := closed.nomad().Jobs().Allocations("ended", true, nil)
	require.NoError(t, err)
	require.Equal(t, "kept\n", logs(t, closed.nomad(), ended[0].ID, "stdout"), "an image removed the ended allocation's files")
	require.Contains(t, closed.Output(), "refused what a web page may have sent")
	require.Contains(t, closed.Output(), "level=WARN")
}

// strangeSite serves the page with all frames at "/", the page of a frame, and takes reports. It returns its origin.
func strangeSite(t *testing.T, reports chan<- attempt, index *atomic.Pointer[string]) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, *index.Load())
	})
	mux.HandleFunc("GET /page", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(page) })
	mux.HandleFunc("POST /report", func(_ http.ResponseWriter, r *http.Request) {
		var a attempt
		if json.NewDecoder(r.Body).Decode(&a) == nil {
			reports <- a
		}
	})
	srv := httptest.NewServer(mux)
	closeLast(t, srv)
	return "http://evil.example:" + port(t, srv.URL)
}

// reboundSite serves the page under a name that, for whatever else it is asked, leads to the agent. A browser sees that
// of a name whose owner changes its address once the page is there.
func reboundSite(t *testing.T, agent string) string {
	t.Helper()
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", agent },
		FlushInterval: -1,
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /page", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(page) })
	mux.Handle("/", proxy) // with the browser's own Host and Origin
	srv := httptest.NewServer(mux)
	closeLast(t, srv)
	return "http://rebound.example:" + port(t, srv.URL)
}

// closeLast closes a server when the test ends, and the streams of pages that are open in a browser then.
func closeLast(t testing.TB, srv *httptest.Server) {
	t.Helper()
	t.Cleanup(func() {
		_ = srv.Listener.Close() // first: a page comes again
		srv.CloseClientConnections()
		srv.Close()
	})
}

func port(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	return u.Port()
}

// browse opens a page in Chromium, which finds the names of this file on loopback, until the test ends.
func browse(t *testing.T, address string) {
	t.Helper()
	program, err := exec.LookPath("chromium")
	require.NoError(t, err, "the tests need a browser: make deps")
	c := exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-extensions",
		"--disable-background-networking", "--disable-sync", "--user-data-dir="+t.TempDir(),
		"--host-resolver-rules=MAP *.example 127.0.0.1", address)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it is many processes
	var said strings.Builder
	c.Stderr = &said
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		_ = c.Wait()
		if t.Failed() {
			t.Logf("the browser said:\n%s", said.String())
		}
	})
}

// TestEveryRouteAsksWhereARequestIsFrom walks the tables of all faces, and some paths that are in none.
func TestEveryRouteAsksWhereARequestIsFrom(t *testing.T) {
	t.Parallel()
	a := dev(t)
	routes := []httpapi.Route{
		{Pattern: "GET /v1/agent/pprof/"},
		{Pattern: "GET /"},
		{Pattern: "POST /v1//jobs"},
		{Pattern: "TRACE /v1/jobs"},
		{Pattern: "OPTIONS /v1/jobs"},
	}
	for _, f := range []httpapi.Face{
		nomad.New(nomad.Config{Pprof: true}), poseidon.New(poseidon.Config{}, poseidon.Deps{}), native.New(native.Config{},
			native.Deps{}), &fleet.Face{}, &web.Face{},
	} {
		routes = append(routes, f.Routes()...)
	}
	require.Greater(t, len(routes), 150)
	before := state(t, a)
	placeholder := regexp.MustCompile(`\{[^}]*\}`)
	asked := 0
	for _, route := range routes {
		methods, path, found := strings.Cut(route.Pattern, " ")
		if !found {
			methods, path = "GET,POST,PUT,DELETE,PATCH", route.Pattern
		}
		for method := range strings.SplitSeq(methods, ",") {
			for status, sets := range map[int]func(*http.Request){
				http.StatusForbidden: func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") },
				http.StatusMisdirectedRequest: func(r *http.Request) {
					r.Host = "evil.example:4646"
					r.Header.Set("Origin", "http://evil.example:4646") // as its own page's
				},
			} {
				r, err := http.NewRequestWithContext(t.Context(), method, "http://"+a.addr+placeholder.ReplaceAllString(path, "x"),
					strings.NewReader("{}"))
				require.NoError(t, err)
				sets(r)
				answer, err := http.DefaultTransport.RoundTrip(r)
				require.NoError(t, err)
				require.Equal(t, status, answer.StatusCode, "%s %s", method, path)
				require.Empty(t, answer.Header["Access-Control-Allow-Origin"])
				_, _ = io.Copy(io.Discard, answer.Body)
				require.NoError(t, answer.Body.Close())
				asked++
			}
		}
	}
	require.Greater(t, asked, 300)
	require.Equal(t, before, state(t, a), "a refused request had an effect")
}

// state is what requests change.
func state(t *testing.T, a *agent) (seen []string) {
	t.Helper()
	for _, path := range []string{
		"/v1/jobs", "/v1/environments", "/v1/namespaces", "/v1/node/pools", "/v1/evaluations", "/v1/fleet/pools",
		"/v1/operator/scheduler/configuration",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+a.addr+path, nil)
		require.NoError(t, err)
		answer, err := http.DefaultTransport.RoundTrip(r)
		require.NoError(t, err)
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusOK, answer.StatusCode, path)
		seen = append(seen, path+": "+string(text))
	}
	return seen
}
