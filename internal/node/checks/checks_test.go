package checks

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/service"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripted answers as it is told.
type scripted struct {
	ok     atomic.Bool
	probes atomic.Int32
	hang   atomic.Bool
}

func (p *scripted) Probe(ctx context.Context, _ *Check) (int, string, bool) {
	p.probes.Add(1)
	if p.hang.Load() {
		<-ctx.Done()
		return 0, "timeout", false
	}
	return 200, "said", p.ok.Load()
}

func TestSet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &scripted{}
		var changed atomic.Int32
		s := New(Deps{Clock: clock.Wall{}, Prober: p, Changed: func(*Check, bool, bool) { changed.Add(1) }})
		one := &Check{Name: "one", Interval: 10 * time.Second, Timeout: time.Second}
		two := &Check{Name: "two", Interval: time.Minute, Timeout: time.Second, OnUpdate: service.OnUpdateIgnore}
		require.True(t, s.Passing(), "there are none")
		s.Update(t.Context(), []*Check{one, two})
		require.False(t, s.Passing())
		require.Equal(t, service.CheckPending, s.Statuses()[one.ID()].Status)
		synctest.Wait()
		require.Equal(t, int32(2), changed.Load(), "both at once")
		require.Equal(t, service.CheckFailure, s.Statuses()[one.ID()].Status)
		require.Equal(t, "healthiness", s.Statuses()[one.ID()].Mode)
		require.Equal(t, "readiness", s.Statuses()[two.ID()].Mode)
		p.ok.Store(true)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Equal(t, int32(3), changed.Load())
		require.True(t, s.Passing(), "the other one, which fails, decides nothing")
		require.Equal(t, 200, s.Statuses()[one.ID()].StatusCode)

		p.hang.Store(true)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		require.False(t, s.Passing(), "one that hangs fails after its timeout")
		p.hang.Store(false)

		before := p.probes.Load()
		s.Update(t.Context(), []*Check{one, {Name: "three", Interval: time.Minute, Timeout: time.Second}})
		synctest.Wait()
		require.Equal(t, before+1, p.probes.Load(), "the one that stays goes on")
		require.Len(t, s.Statuses(), 2)
		s.Close()
		require.Empty(t, s.Statuses())
		before = p.probes.Load()
		time.Sleep(time.Hour)
		require.Equal(t, before, p.probes.Load())
	})
}

func TestNetwork(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow":
			<-r.Context().Done()
		case "/away":
			http.Redirect(w, r, "/ok", http.StatusFound)
		case "/ok":
			if r.Method != "PUT" || r.Host != "example.com" || r.Header.Get("X") != "y" || r.ContentLength != 2 {
				w.WriteHeader(http.StatusTeapot)
			}
		case "/early":
			w.WriteHeader(http.StatusEarlyHints)
			_, _ = w.Write([]byte("now"))
		case "/cut":
			w.Header().Set("Content-Length", "10")
			_, _ = w.Write([]byte("five?"))
		case "/heads":
			w.Header().Set("X", strings.Repeat("x", maxAnswer))
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte("not \xff yet" + strings.Repeat("x", 10_000)))
		}
	}))
	defer server.Close()
	tls := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer tls.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	gone := closed.Addr().String()
	require.NoError(t, closed.Close())
	for name, c := range map[string]struct {
		check  Check
		code   int
		output string
		ok     bool
	}{
		"tcp":          {Check{Type: "tcp", Address: server.Listener.Addr().String()}, 0, "tcp ok", true},
		"tcp, refused": {Check{Type: "tcp", Address: gone}, 0, "refused", false},
		"http": {Check{Type: "http", URL: server.URL + "/ok", Method: "PUT", Body: "ab", Header: map[string][]string{
			"Host": {"example.com"}, "X": {"y"},
		}}, 200, "http ok", true},
		"http, refused":   {Check{Type: "http", URL: "http://" + gone}, 0, "refused", false},
		"http, 503":       {Check{Type: "http", URL: server.URL + "/no"}, 503, "http status 503: not \uFFFD yet", false},
		"http, away":      {Check{Type: "http", URL: server.URL + "/away"}, 302, "http status 302", false},
		"http, slow":      {Check{Type: "http", URL: server.URL + "/slow"}, 0, "deadline", false},
		"http, early":     {Check{Type: "http", URL: server.URL + "/early"}, 200, "http ok", true},
		"http, cut":       {Check{Type: "http", URL: server.URL + "/cut"}, 200, "unexpected EOF", false},
		"http, heads":     {Check{Type: "http", URL: server.URL + "/heads"}, 0, "unexpected EOF", false},
		"http, no scheme": {Check{Type: "http", URL: "//" + gone}, 0, "unsupported protocol scheme", false},
		"http, bad header": {
			Check{Type: "http", URL: server.URL, Header: map[string][]string{"X": {"a\r\nY: b"}}},
			0, `invalid header "X"`, false,
		},
		"https, unknown":   {Check{Type: "http", URL: tls.URL}, 0, "certificate", false},
		"https, unchecked": {Check{Type: "http", URL: tls.URL, TLSSkipVerify: true}, 200, "http ok", true},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		code, output, ok := (&Network{}).Probe(ctx, &c.check)
		cancel()
		require.Equal(t, c.code, code, name)
		require.Contains(t, output, c.output, name)
		require.Less(t, len(output), 4000, name)
		require.Equal(t, c.ok, ok, name)
	}
}
