package httpapi

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
)

// Requests as browsers send them, from their own traffic, and as programs do.
// guardCase is a request, and what a guard says of it.
type guardCase struct {
	what, method, host, headers string // "Name: value|Name: value"
	guard                       *Guard
	status                      int // 0 = let through
}

func guarded(configured, anyHost *Guard) []guardCase {
	const own = "127.0.0.1:4646"
	return []guardCase{
		{"curl", "POST", own, "Content-Type: application/x-www-form-urlencoded", nil, 0},
		{"curl -H Content-Type: text/plain", "PUT", "[::1]:4646", "Content-Type: text/plain", nil, 0},
		{"a program's websocket", "GET", "localhost:4646", "Connection: Upgrade|Upgrade: websocket", nil, 0},
		{"HTTP/1.0 without Host", "GET", "", "", nil, 0},
		{"an address typed into a browser", "GET", own, "Sec-Fetch-Site: none|Sec-Fetch-Mode: navigate|Sec-Fetch-Dest: document", nil, 0},
		{"the agent's own page reads", "GET", own, "Sec-Fetch-Site: same-origin|Sec-Fetch-Mode: cors", nil, 0},
		{"the agent's own page acts", "POST", own, "Sec-Fetch-Site: same-origin|Origin: http://" + own, nil, 0},
		{
			"the same, in clear text and far away, where browsers send no Sec-Fetch-Site", "DELETE", "10.0.0.7:4646",
			"Origin: http://10.0.0.7:4646", nil, 0,
		},
		{"the agent's own page opens a websocket", "GET", own, "Origin: http://" + own + "|Connection: Upgrade|Upgrade: websocket", nil, 0},
		{"a link to what is no page", "GET", own, "Sec-Fetch-Site: cross-site|Sec-Fetch-Mode: navigate|Sec-Fetch-Dest: document", nil, 403},

		{
			"fetch, no-cors", "POST", own,
			"Sec-Fetch-Site: cross-site|Sec-Fetch-Mode: no-cors|Origin: http://evil.example|Content-Type: text/plain", nil, 403,
		},
		{
			"a form", "POST", own,
			"Sec-Fetch-Site: cross-site|Sec-Fetch-Mode: navigate|Sec-Fetch-Dest: document|Origin: http://evil.example", nil, 403,
		},
		{"an older browser's form", "POST", own, "Origin: http://evil.example", nil, 403},
		{"a file, a sandboxed frame", "POST", own, "Origin: null", nil, 403},
		{"a preflight", "OPTIONS", own, "Origin: http://evil.example|Access-Control-Request-Method: PUT", nil, 403},
		{"an image", "GET", own, "Sec-Fetch-Site: cross-site|Sec-Fetch-Mode: no-cors|Sec-Fetch-Dest: image", nil, 403},
		{"a websocket", "GET", own, "Origin: http://evil.example|Connection: Upgrade|Upgrade: websocket", nil, 403},
		{"another port of this machine", "POST", own, "Sec-Fetch-Site: same-site|Origin: http://127.0.0.1:8888", nil, 403},
		{"another port of this machine, websocket", "GET", own, "Origin: http://127.0.0.1:8888", nil, 403},
		{"a frame of ours in its page", "GET", own, "Sec-Fetch-Site: cross-site|Sec-Fetch-Mode: navigate|Sec-Fetch-Dest: iframe", nil, 403},

		{"a rebound name reads", "GET", "evil.example:4646", "", nil, 421},
		{"a rebound name acts", "POST", "evil.example:4646", "Origin: http://evil.example:4646", nil, 421},
		{
			"a rebound name, as its browser sees it", "POST", "evil.example:4646",
			"Sec-Fetch-Site: same-origin|Origin: http://evil.example:4646", nil, 421,
		},
		{"a rebound name that looks like ours", "GET", "localhost.evil.example", "", nil, 421},
		{"a rebound name that looks like an address", "GET", "127.0.0.1.evil.example", "", nil, 421},
		{"an address that browsers would rewrite", "GET", "0x7f.1", "", nil, 421},

		{"below localhost", "GET", "drover.localhost:4646", "", nil, 0},
		{"with the final dot", "GET", "localhost.:4646", "", nil, 0},
		{"a configured name", "GET", "drover.EXAMPLE.com", "", configured, 0},
		{"the host's name", "GET", "vm:4646", "", configured, 0},
		{"below a configured name", "GET", "a.b.corp.example:4646", "", configured, 0},
		{"not below it", "GET", "corp.example", "", configured, 421},
		{"only its end", "GET", "evilcorp.example", "", configured, 421},
		{"any name", "GET", "evil.example", "", anyHost, 0},
		{"any name, but another page", "POST", "drover.example", "Origin: http://evil.example", anyHost, 403},
		{"a configured page", "POST", own, "Sec-Fetch-Site: cross-site|Origin: https://ide.example.com", configured, 0},
		{"a configured page's websocket", "GET", own, "Origin: http://localhost:3000|Upgrade: websocket", configured, 0},
		{"its other scheme", "POST", own, "Origin: http://ide.example.com", configured, 403},
		{"its other port", "POST", own, "Origin: https://ide.example.com:8443", configured, 403},
	}
}

func TestGuard(t *testing.T) {
	t.Parallel()
	configured, err := NewGuard(GuardConfig{
		Origins: []string{"https://ide.example.com", "http://localhost:3000"}, Hosts: []string{"Drover.example.com", "*.corp.example", "vm", ""},
	})
	require.NoError(t, err)
	anyHost, err := NewGuard(GuardConfig{Hosts: []string{"*"}})
	require.NoError(t, err)
	for _, c := range guarded(configured, anyHost) {
		r := httptest.NewRequest(c.method, "/v1/jobs", nil)
		r.Host = c.host
		for h := range strings.SplitSeq(c.headers, "|") {
			if name, value, ok := strings.Cut(h, ": "); ok {
				r.Header.Set(name, value)
			}
		}
		g := c.guard
		if g == nil {
			g = &Guard{}
		}
		err := g.Check(r)
		if c.status == 0 {
			require.NoError(t, err, c.what)
			continue
		}
		require.Error(t, err, c.what)
		require.Equal(t, c.status, Status(err), c.what)
		require.Contains(t, err.Error(), map[int]string{403: "allowed_origins", 421: "allowed_hosts"}[c.status], c.what)
	}
}

// A person may follow a link from elsewhere to the web page, and nowhere else.
func TestGuardLetsLinksToThePageThrough(t *testing.T) {
	t.Parallel()
	for path, ok := range map[string]bool{"/": true, "/ui": true, "/ui/jobs": true, "/uix": false, "/v1/jobs": false, "/v1/client/gc": false} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Host = "127.0.0.1:4646"
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.Header.Set("Sec-Fetch-Mode", "navigate")
		r.Header.Set("Sec-Fetch-Dest", "document")
		require.Equal(t, ok, (&Guard{}).Check(r) == nil, path)
	}
}

func TestGuardRefusesOriginsThatBrowsersNeverSend(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"", "null", "*", "ide.example.com", "https://", "https://ide.example.com/", "https://IDE.example.com",
		"https://ide.example.com:443", "http://x:80", "file:///x", "chrome://x",
	} {
		_, err := NewGuard(GuardConfig{Origins: []string{bad}})
		require.ErrorContains(t, err, "no origin", bad)
	}
}

// What it refuses has no effect and is logged, but aloud once a minute only.
func TestGuardStandsBeforeTheRoutes(t *testing.T) {
	t.Parallel()
	cfg := testConfig()
	var log bytes.Buffer
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	now := &stopped{now: time.Unix(1e9, 0)}
	cfg.Clock = now
	h := Handler(cfg, testFace{{Pattern: "/", Need: Nothing, Handle: func(_ http.ResponseWriter, r *http.Request) error {
		require.Empty(t, r.Header["Origin"], "what follows need not look again")
		return nil
	}}})
	for range 3 {
		require.Equal(t, 403, do(t, h, "POST", "/x", "", "Origin", "http://evil.example").Code)
		require.Equal(t, 403, do(t, h, "OPTIONS", "/x", "", "Origin", "http://evil.example", "Access-Control-Request-Method", "POST").Code)
	}
	require.Equal(t, 1, strings.Count(log.String(), "level=WARN"), log.String())
	require.Contains(t, log.String(), "origin=http://evil.example")
	now.now = now.now.Add(2 * time.Minute)
	require.Equal(t, 403, do(t, h, "GET", "/nowhere", "", "Sec-Fetch-Site", "cross-site").Code)
	require.Equal(t, 2, strings.Count(log.String(), "level=WARN"), log.String())
	require.Equal(t, 200, do(t, h, "POST", "/x", "", "Origin", "http://127.0.0.1").Code)
}

// stopped is a clock that a test sets.
type stopped struct {
	clock.Wall
	now time.Time
}

func (s *stopped) Now() time.Time { return s.now }

func BenchmarkGuard(b *testing.B) {
	r := httptest.NewRequest(http.MethodPost, "/v1/jobs", nil)
	r.Host = "127.0.0.1:4646"
	g := &Guard{}
	b.ReportAllocs()
	for b.Loop() {
		if err := g.Check(r); err != nil {
			b.Fatal(err)
		}
	}
}
