package relay

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/replay"
)

// keeping makes three servers of which one keeps whatever is asked for: keeper says which, "" while nobody can say. hold is how long
// a request waits for a leader.
func keeping(t *testing.T, hold time.Duration, handle httpapi.Handle) (w *world, s []*server, keeper *atomic.Value) {
	keeper = &atomic.Value{}
	keeper.Store("c")
	owner := func(context.Context, httpapi.Place, string) (string, error) {
		if id := keeper.Load().(string); id != "" {
			return id, nil
		}
		return "", drover.Errorf(drover.Unavailable, "nobody has taken over yet")
	}
	w, s = three(t, func(c *Config, d *Deps) { c.Hold, d.Owner = hold, owner }, func() []httpapi.Route {
		key := httpapi.PathKey("id")
		return []httpapi.Route{
			{Pattern: "/runner/{id}", Where: httpapi.Runner(key), Handle: handle},
			{Pattern: "/execution/{id}", Where: httpapi.Execution(key), Handle: handle},
		}
	})
	return w, s, keeper
}

// A request for what a server kept that is gone was refused at once. It waits until another server has taken over.
func TestARequestWaitsForWhoTakesOver(t *testing.T) {
	t.Parallel()
	const hold = 2 * time.Second
	for _, path := range []string{"/runner/x", "/execution/x"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			w, s, keeper := keeping(t, hold, tell)
			w.die("c")
			got := make(chan answer)
			go func() { got <- s[1].ask(t, "POST", path, strings.NewReader("all of it")) }() // ends with its answer
			time.AfterFunc(hold/10, func() { keeper.Store("") })
			time.AfterFunc(hold+hold/10, func() { keeper.Store("a") }) // later than a leader is waited for
			a := <-got
			require.Equal(t, "a", a.by, a.body)
			require.True(t, strings.HasSuffix(a.body, "body=all of it"), a.body)
		})
	}
	w, s, keeper := keeping(t, hold/10, tell)
	w.die("c")
	a := s[1].ask(t, "GET", "/runner/x", nil)
	require.Equal(t, http.StatusServiceUnavailable, a.status)
	require.Contains(t, a.body, "no other has taken over from it yet")
	keeper.Store("")
	a = s[1].ask(t, "GET", "/runner/x", nil)
	require.Equal(t, http.StatusServiceUnavailable, a.status)
	require.Contains(t, a.body, "nobody has taken over yet")
}

// A server that gives its runners away refuses what it did not carry out. Who sent it asks the next one, with the same body.
func TestARefusedRequestGoesToWhoTookOver(t *testing.T) {
	t.Parallel()
	var keeper *atomic.Value
	_, s, k := keeping(t, time.Minute, func(w http.ResponseWriter, r *http.Request) error {
		if keeper.Load() == "c" {
			return drover.Errorf(drover.NotLeader, "this server stops")
		}
		return tell(w, r)
	})
	keeper = k
	for _, heir := range []string{"a", "b"} { // b is the one that sends it on
		keeper.Store("c")
		moved := time.AfterFunc(100*time.Millisecond, func() { keeper.Store(heir) })
		got := s[1].ask(t, "POST", "/runner/x", strings.NewReader("all of it"))
		require.False(t, moved.Stop())
		require.Equal(t, heir, got.by, got.body)
		require.True(t, strings.HasSuffix(got.body, "body=all of it"), got.body)
		require.Empty(t, got.header.Get(httpapi.RefusedHeader))
	}

	keeper.Store("c")
	long := strings.Repeat("x", replay.Most+1) // nobody keeps so much
	got := s[1].ask(t, "POST", "/runner/x", strings.NewReader(long))
	require.Equal(t, http.StatusServiceUnavailable, got.status)
}

// A read of an execution is asked again when the server that was asked dies; what might be carried out twice is not.
func TestReadsOfExecutionsAreAskedAgain(t *testing.T) {
	t.Parallel()
	_, s, keeper := keeping(t, time.Minute, tell)
	for _, c := range []struct {
		method, path string
		status       int
	}{{"GET", "/execution/x", http.StatusOK}, {"GET", "/runner/x", 503}, {"POST", "/execution/x", 503}} {
		keeper.Store("c")
		dial := s[1].view.dial
		s[1].view.dial = func(ctx context.Context, address string) (net.Conn, error) {
			if keeper.Swap("a") == "a" {
				return dial(ctx, address)
			}
			near, far := net.Pipe()
			go func() { // ends with the pipe
				_, _ = far.Read(make([]byte, 4096))
				_ = far.Close()
			}()
			return near, nil
		}
		s[1].relay.Close()
		var body *strings.Reader
		got := answer{}
		if c.method == "POST" {
			body = strings.NewReader("x")
			got = s[1].ask(t, c.method, c.path, body)
		} else {
			got = s[1].ask(t, c.method, c.path, nil)
		}
		require.Equal(t, c.status, got.status, "%s %s: %s", c.method, c.path, got.body)
		s[1].view.dial = dial
	}
}
