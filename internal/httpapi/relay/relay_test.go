package relay

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
)

func say(text string) httpapi.Handle {
	return func(w http.ResponseWriter, _ *http.Request) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

// tell answers with what the handler sees of the request.
func tell(w http.ResponseWriter, r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	hop, relayed := httpapi.HopOf(r.Context())
	_, err = fmt.Fprintf(w, "%s %s?%s host=%s token=%s via=%v/%s/%s forwarded=%s tls=%v way=%q client=%s body=%s",
		r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Host, httpapi.Token(r), relayed, hop.From, hop.Way,
		r.Header.Get("X-Forwarded-For"), r.TLS != nil, r.Header.Get(wayHeader), r.RemoteAddr, body)
	return err
}

func three(t *testing.T, change func(*Config, *Deps), routes func() []httpapi.Route) (*world, []*server) {
	w := newWorld(t)
	var list []*server
	for _, id := range []string{"a", "b", "c"} {
		list = append(list, w.add(id, "global", change, routes()...))
	}
	w.lead("a")
	return w, list
}

// A follower sends the whole request to the leader: method, path, query, host, token and body, and the client's address.
// What a client says in the headers of relays counts for nothing.
func TestWholeRequest(t *testing.T) {
	t.Parallel()
	_, s := three(t, nil, func() []httpapi.Route {
		return []httpapi.Route{
			{Pattern: "/tell/{rest...}", Where: httpapi.Leader, Handle: tell},
			{Pattern: "GET /here", Where: httpapi.Here, Handle: tell},
		}
	})
	got := s[1].ask(t, "PUT", "/tell/a%2Fb?x=1;y&z=%2", strings.NewReader("text"), "X-Forwarded-For", "1.2.3.4",
		wayHeader, "server", fromHeader, "evil", clientHeader, "9.9.9.9:9", secureHeader, "true")
	require.Equal(t, "a", got.by)
	require.Contains(t, got.body, "PUT /tell/a%2Fb?x=1;y&z=%2 host="+s[1].http+
		` token=token via=true/b/server forwarded=1.2.3.4 tls=false way="" client=127.0.0.1:`)
	require.True(t, strings.HasSuffix(got.body, "body=text"), got.body)
	require.Equal(t, []string{"PUT /tell/a/b"}, s[0].saw())
	require.Empty(t, s[1].saw())

	got = s[1].ask(t, "GET", "/here", nil, wayHeader, "server", clientHeader, "9.9.9.9:9")
	require.Equal(t, "b", got.by)
	require.Contains(t, got.body, "via=false//")
	require.NotContains(t, got.body, "9.9.9.9")

	got = s[1].ask(t, "GET", "/tell/x", nil, "X-Nomad-Token", "wrong")
	require.Equal(t, http.StatusForbidden, got.status)
	require.Len(t, s[0].saw(), 1, "a token that is refused here goes nowhere")
}

// Where says who answers.
func TestPlaces(t *testing.T) {
	t.Parallel()
	owner := func(_ context.Context, place httpapi.Place, key string) (string, error) {
		switch key {
		case "unknown":
			return "", nil
		case "gone":
			return "", drover.Errorf(drover.Gone, "it ended")
		}
		return strings.TrimPrefix(key, "at-"), nil
	}
	caught, abroad := make(chan struct{}, 1), make(chan string, 1)
	w, s := three(t, func(_ *Config, d *Deps) {
		d.Owner, d.Abroad = owner, func(region string) { abroad <- region }
		d.Linearize = func(context.Context) error { caught <- struct{}{}; return nil }
	}, func() []httpapi.Route {
		return []httpapi.Route{
			{Pattern: "GET /any", Where: httpapi.Any, Handle: say("")},
			{Pattern: "/reads", Where: httpapi.Reads, Handle: say("")},
			{Pattern: "/alone", Where: httpapi.ReadsAlone, Handle: say("")},
			{Pattern: "GET /member", Where: httpapi.Member, Handle: say("")},
			{Pattern: "GET /runner/{id}", Where: httpapi.Runner(httpapi.PathKey("id")), Handle: say("")},
			{Pattern: "GET /node", Where: httpapi.Node(httpapi.QueryKey("node_id")), Handle: say("")},
			{Pattern: "POST /claim", Where: httpapi.Claim(httpapi.BodyKey("environment")), Handle: tell},
		}
	})
	w.add("x", "west", nil, httpapi.Route{Pattern: "GET /any", Where: httpapi.Any, Handle: say("")})
	for _, c := range []struct {
		method, path, by string
		status           int
	}{
		{"GET", "/any", "b", 200},
		{"GET", "/any?region=global", "b", 200},
		{"GET", "/any?region=west", "x", 200},
		{"GET", "/any?region=east", "No path to region", 500},
		{"GET", "/reads", "a", 200},
		{"GET", "/reads?stale", "b", 200},
		{"GET", "/reads?stale=true", "b", 200},
		{"GET", "/reads?stale=false", "a", 200},
		{"GET", "/reads?stale=perhaps", "Expect `true` or `false`", 400},
		{"GET", "/reads?consistent", "b", 200},
		{"GET", "/reads?consistent&stale", "exclude each other", 400},
		{"GET", "/alone?stale", "b", 200},
		{"PUT", "/alone?stale", "a", 200},
		{"GET", "/member", "b", 200},
		{"GET", "/member?server_id=c", "c", 200},
		{"GET", "/member?server_id=name-c.global", "c", 200},
		{"GET", "/member?server_id=leader", "a", 200},
		{"GET", "/member?server_id=z", "unknown Nomad server z", 500},
		{"GET", "/member?node_id=at-c", "c", 200},
		{"GET", "/member?node_id=at-b", "b", 200},
		{"GET", "/member?node_id=unknown", "a", 200},
		{"GET", "/member?node_id=at-c&server_id=a", "a", 200},
		{"GET", "/runner/at-c", "c", 200},
		{"GET", "/runner/at-b", "b", 200},
		{"GET", "/runner/unknown", "a", 200},
		{"GET", "/runner/gone", "it ended", 410},
		{"GET", "/node", "b", 200},
		{"GET", "/node?node_id=at-c", "c", 200},
	} {
		got := s[1].ask(t, c.method, c.path, nil)
		require.Equal(t, c.status, got.status, "%s %s: %s", c.method, c.path, got.body)
		require.Contains(t, got.by+got.body, c.by, "%s %s", c.method, c.path)
		require.Equal(t, "", got.header.Get(httpapi.RefusedHeader))
	}
	require.Len(t, caught, 1)
	require.Equal(t, "west", <-abroad)
	require.Empty(t, abroad, "nobody knows east")
	for body, by := range map[string]string{
		`{"files": [{"path": "x", "environment": "at-b"}], "Environment": "at-c"}`: "c",
		`{"environment": "at-b", "x": {"y": [1]}}`:                                 "b",
		`{"environment":`: "a", `[]`: "a", `{}`: "a", "": "a",
	} {
		got := s[1].ask(t, "POST", "/claim", strings.NewReader(body))
		require.Equal(t, by, got.by, body)
		require.True(t, strings.HasSuffix(got.body, "body="+body), got.body)
	}
	w.die("c")
	require.Equal(t, "a", s[1].ask(t, "GET", "/node?node_id=at-c", nil).by, "who is gone answers for nothing")
}

// A route may say which region a request is for, where the request does not; its body is read for that only where there is another.
func TestRegionOfTheBody(t *testing.T) {
	t.Parallel()
	read := 0
	region := func(r *http.Request) (string, error) {
		read++
		return httpapi.BodyKey("Job", "Region")(r)
	}
	route := httpapi.Route{Pattern: "PUT /jobs", Where: httpapi.Any.Of(region), Handle: tell}
	w, s := three(t, nil, func() []httpapi.Route { return []httpapi.Route{route} })
	const west = `{"Submission": {"Region": "a"}, "job": {"ID": "x", "Region": "west", "Type": "batch"}}`
	got := s[1].ask(t, "PUT", "/jobs", strings.NewReader(west))
	require.Equal(t, "b", got.by, "its handler refuses it")
	require.Zero(t, read)
	w.add("x", "west", nil, route)
	for _, c := range []struct{ query, body, by string }{
		{"", west, "x"},
		{"?region=global", west, "b"},
		{"", `{"Job": {"Region": "global"}}`, "b"},
		{"", `{"Job": {"Region": ""}}`, "b"},
		{"", `{"Job": {}}`, "b"},
		{"", `{"Job": ["Region", "west"]}`, "b"},
		{"", `{"Job": {"Region": "east"}}`, "No path to region"},
	} {
		got := s[1].ask(t, "PUT", "/jobs"+c.query, strings.NewReader(c.body))
		if got.status != http.StatusOK {
			require.Contains(t, got.body, c.by, c.body)
		} else {
			require.Equal(t, c.by, got.by, c.body)
			require.True(t, strings.HasSuffix(got.body, "body="+c.body), got.body)
		}
	}
}

// Without a leader a request waits, and then says Nomad's sentence.
// While servers are upgraded the leader may be an older one, without a path that a follower has. Whoever asked the follower was told that
// the environment does not exist.
func TestALeaderThatDoesNotKnowThePath(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answers := func(contentType, text string) httpapi.Handle {
		return func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(http.StatusNotFound)
			_, err := io.WriteString(w, text)
			return err
		}
	}
	of := func(says func(text string) httpapi.Handle) []httpapi.Route {
		return []httpapi.Route{
			{Pattern: "POST /size", Where: httpapi.Leader, Handle: says("no such path: /size")},
			{Pattern: "POST /mux", Where: httpapi.Leader, Handle: says("404 page not found\n")},
			{Pattern: "POST /gone", Where: httpapi.Leader, Handle: says("node not found")},
			{Pattern: "POST /long", Where: httpapi.Leader, Handle: says(strings.Repeat("not found, ", 1000))},
		}
	}
	w.add("a", "global", nil, of(func(text string) httpapi.Handle { return answers("text/plain; charset=utf-8", text) })...)
	follower := w.add("b", "global", nil, of(say)...)
	w.lead("a")
	for _, path := range []string{"/size", "/mux"} {
		got := follower.ask(t, "POST", path, strings.NewReader("{}"))
		require.Equal(t, http.StatusNotImplemented, got.status)
		require.Contains(t, got.body, "runs an older program that does not know it")
	}
	got := follower.ask(t, "POST", "/gone", nil)
	require.Equal(t, http.StatusNotFound, got.status)
	require.Equal(t, "node not found", got.body)
	got = follower.ask(t, "POST", "/long", nil)
	require.Len(t, got.body, 11_000)
}

func TestNoLeader(t *testing.T) {
	t.Parallel()
	w, s := three(t, func(c *Config, _ *Deps) { c.Hold = 100 * time.Millisecond }, func() []httpapi.Route {
		return []httpapi.Route{{Pattern: "/x", Where: httpapi.Leader, Handle: say("yes")}}
	})
	w.lead("")
	got := s[1].ask(t, "PUT", "/x", strings.NewReader("body"))
	require.Equal(t, http.StatusServiceUnavailable, got.status)
	require.Contains(t, got.body, "No cluster leader")
	require.Equal(t, "1", got.header.Get("Retry-After"))

	asked := make(chan answer)
	w2, s2 := three(t, nil, func() []httpapi.Route {
		return []httpapi.Route{{Pattern: "/x", Where: httpapi.Leader, Handle: say("yes")}}
	})
	w2.lead("")
	go func() { asked <- s2[1].ask(t, "PUT", "/x", strings.NewReader("body")) }() // ends with its answer
	w2.lead("c")
	require.Equal(t, "c", (<-asked).by)
}

// A server that gets a request which is not for it refuses; who sent it asks the next leader if that repeats nothing.
func TestOneHop(t *testing.T) {
	t.Parallel()
	w, s := three(t, func(c *Config, _ *Deps) { c.Hold = 200 * time.Millisecond }, func() []httpapi.Route {
		return []httpapi.Route{{Pattern: "/x", Where: httpapi.Leader, Handle: say("yes")}}
	})
	old := s[2].view
	old.world = newWorld(t) // c believes that b leads, and all others believe in c
	old.world.list, old.world.leader = w.list, "b"
	w.lead("c")
	got := s[1].ask(t, "PUT", "/x", strings.NewReader("body"))
	require.Equal(t, http.StatusServiceUnavailable, got.status)
	require.Contains(t, got.body, "No cluster leader")
	require.Empty(t, s[1].saw(), "it does not come back")

	s[1].relay.cfg.Hold = time.Minute
	done := make(chan answer)
	go func() { done <- s[1].ask(t, "POST", "/x", nil) }() // ends with its answer
	time.AfterFunc(50*time.Millisecond, func() { w.lead("a") })
	require.Equal(t, "a", (<-done).by, "without a body it is asked again")
}

// Only a connection that could not be made lets a request with a body be sent again.
func TestSentAgainOnlyIfUnsent(t *testing.T) {
	t.Parallel()
	w, s := three(t, nil, func() []httpapi.Route {
		return []httpapi.Route{{Pattern: "/x", Where: httpapi.Leader, Handle: tell}}
	})
	dial := s[1].view.dial
	s[1].view.dial = func(ctx context.Context, address string) (net.Conn, error) {
		if leader, ok := s[0].view.Leader(); ok && leader.ID == "a" {
			w.lead("c")
			return nil, drover.Errorf(drover.Unavailable, "refused")
		}
		return dial(ctx, address)
	}
	got := s[1].ask(t, "PUT", "/x", strings.NewReader("body"))
	require.Equal(t, "c", got.by, got.body)
	require.True(t, strings.HasSuffix(got.body, "body=body"))

	s[1].view.dial = func(context.Context, string) (net.Conn, error) { // it dies when it has read the request
		w.lead("a")
		near, far := net.Pipe()
		go func() { // ends with the pipe
			_, _ = far.Read(make([]byte, 4096))
			_ = far.Close()
		}()
		return near, nil
	}
	s[1].relay.Close()
	w.lead("b")
	w.lead("c")
	got = s[1].ask(t, "PUT", "/x", strings.NewReader("body"))
	require.Equal(t, http.StatusServiceUnavailable, got.status, got.body)
	require.Empty(t, s[0].saw(), "it may have been carried out")
}

// A leader that is stopped holds a request no longer than it is believed to lead.
func TestStoppedLeader(t *testing.T) {
	t.Parallel()
	w, s := three(t, nil, func() []httpapi.Route {
		return []httpapi.Route{{Pattern: "/x", Where: httpapi.Leader, Handle: say("yes")}}
	})
	s[1].view.dial = func(context.Context, string) (net.Conn, error) {
		near, far := net.Pipe()
		t.Cleanup(func() { _ = far.Close() })
		go func() { _, _ = io.Copy(io.Discard, far); _ = far.Close() }() // ends with the pipe
		time.AfterFunc(10*time.Millisecond, func() { w.lead("c") })
		return near, nil
	}
	got := s[1].ask(t, "PUT", "/x", strings.NewReader("body"))
	require.Equal(t, http.StatusServiceUnavailable, got.status)
	require.Contains(t, got.body, "name-a")
	require.Contains(t, got.body, "it is not known whether it carried the request out")
}

// An agent without server sends all to one, as a stranger.
func TestNode(t *testing.T) {
	t.Parallel()
	routes := func() []httpapi.Route {
		return []httpapi.Route{
			{Pattern: "/tell", Where: httpapi.Leader, Handle: tell},
			{Pattern: "/any", Where: httpapi.Any, Handle: tell},
			{Pattern: "/reads", Where: httpapi.Reads, Handle: tell},
			{Pattern: "/member", Where: httpapi.Member, Handle: tell},
		}
	}
	_, s := three(t, nil, routes)
	handler := httpapi.Handler(httpapi.Config{
		Logger: s[1].relay.log, Clock: s[1].relay.clock, Relay: s[1].relay, Resolver: httpapi.OneToken("token"),
	}, face{s[1], routes()})
	link := listen(t, FromNode(handler, "n", nil))
	node := NewNode(Config{}, "n", func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", link)
	}, s[1].relay.clock, s[1].relay.log)
	t.Cleanup(node.Close)
	n := &server{id: "n"}
	n.http = listen(t, httpapi.Handler(httpapi.Config{Logger: node.log, Clock: node.clock, Relay: node}, face{n, []httpapi.Route{
		{Pattern: "/", Where: httpapi.Any, MaxBody: -1, Stream: true, Handle: tell},
		{Pattern: "/reads", Where: httpapi.Reads, Handle: tell},
		{Pattern: "/member", Where: httpapi.Member, Handle: tell},
		{Pattern: "/node", Where: httpapi.Node(httpapi.QueryKey("node_id")), Handle: tell},
		{Pattern: "/here", Where: httpapi.Here, Handle: tell},
	}}))
	got := n.ask(t, "PUT", "/tell?region=global", strings.NewReader("x"), wayHeader, "server")
	require.Equal(t, "a", got.by, got.body)
	require.Contains(t, got.body, "via=true/b/server")
	require.Equal(t, "b", n.ask(t, "GET", "/any", nil, wayHeader, "server").by)
	require.Equal(t, http.StatusUnauthorized, n.ask(t, "GET", "/any", nil, "X-Nomad-Token", "").status)
	for path, by := range map[string]string{
		"/reads": "a", "/reads?stale": "b", "/member": "n", "/member?server_id=c": "c", "/member?server_id=leader": "a",
		"/node": "n", "/node?node_id=n": "n", "/here": "n",
	} {
		got := n.ask(t, "GET", path, nil)
		require.Equal(t, by, got.by, "%s: %d %s", path, got.status, got.body)
	}
	got = n.ask(t, "GET", "/node?node_id=another", nil)
	require.Equal(t, http.StatusNotImplemented, got.status, "a server was asked, which has no such route here")
}

// What regions share is written in the authoritative one, from whichever the request comes and whatever it names.
func TestAuthority(t *testing.T) {
	t.Parallel()
	routes := func() []httpapi.Route {
		return []httpapi.Route{{Pattern: "/shared", Where: httpapi.Authority, Handle: tell}, {Pattern: "/own", Where: httpapi.Any, Handle: tell}}
	}
	w := newWorld(t)
	follows := func(c *Config, _ *Deps) { c.Authority, c.Hold = "global", time.Second }
	w.add("a", "global", follows, routes()...)
	b := w.add("b", "global", follows, routes()...)
	x := w.add("x", "west", follows, routes()...)
	w.lead("a")
	for _, asked := range []*server{x, b} {
		for _, query := range []string{"", "?region=west", "?region=global"} {
			require.Equal(t, "a", asked.ask(t, "PUT", "/shared"+query, strings.NewReader("x")).by, "%s %s", asked.id, query)
		}
	}
	require.Equal(t, "x", b.ask(t, "GET", "/own", nil, "X-Nomad-Region", "west").by)
	w.die("a")
	w.die("b")
	got := x.ask(t, "PUT", "/shared", nil)
	require.Equal(t, http.StatusInternalServerError, got.status)
	require.Contains(t, got.body, "No path to region")
}
