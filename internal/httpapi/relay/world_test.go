package relay

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is what all servers believe: who there is, and who leads.
type world struct {
	t testing.TB

	mu      sync.Mutex // guards what follows
	list    []Server
	leader  string
	changed chan struct{}
}

func newWorld(t testing.TB) *world { return &world{t: t, changed: make(chan struct{})} }

func (w *world) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *world) lead(id string) { w.change(func() { w.leader = id }) }

// die makes gossip say that the server is gone.
func (w *world) die(id string) {
	w.change(func() {
		for i := range w.list {
			w.list[i].Alive = w.list[i].Alive && w.list[i].ID != id
		}
	})
}

// view is the world as one server sees it.
type view struct {
	*world
	self string
	dial func(ctx context.Context, address string) (net.Conn, error)
}

func (v *view) Self() Server { s, _ := v.ByID(v.self); return s }

func (v *view) List() []Server {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.list)
}

func (v *view) ByID(id string) (Server, bool) {
	list := v.List()
	if i := slices.IndexFunc(list, func(s Server) bool { return s.ID == id }); i >= 0 {
		return list[i], true
	}
	return Server{}, false
}

func (v *view) Leader() (Server, bool) {
	v.mu.Lock()
	id := v.leader
	v.mu.Unlock()
	s, ok := v.ByID(id)
	return s, ok && s.Region == v.Self().Region
}

func (v *view) Changed() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.changed
}

func (v *view) Dial(ctx context.Context, address string) (net.Conn, error) {
	return v.dial(ctx, address)
}

// server is one agent of the world.
type server struct {
	id    string
	view  *view
	relay *Relay
	http  string // where clients call it

	mu   sync.Mutex
	seen []string // guarded by mu: the paths that it answered
}

func (s *server) saw() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

type face struct {
	*server
	routes []httpapi.Route
}

func (f face) Routes() []httpapi.Route {
	for i := range f.routes {
		if handle := f.routes[i].Handle; handle != nil {
			f.routes[i].Handle = func(w http.ResponseWriter, r *http.Request) error {
				f.mu.Lock()
				f.seen = append(f.seen, r.Method+" "+r.URL.Path)
				f.mu.Unlock()
				w.Header().Set("Answered-By", f.id)
				return handle(w, r)
			}
		}
	}
	return f.routes
}

func (face) WriteError(w http.ResponseWriter, _ *http.Request, err error) {
	http.Error(w, drover.CodeOf(err).String()+": "+httpapi.Message(err), httpapi.Status(err))
}

// listen serves until the test ends.
func listen(t testing.TB, h http.Handler) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	srv := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)}
	served := make(chan struct{})
	go func() { defer close(served); _ = srv.Serve(ln) }() // ends with Close
	t.Cleanup(func() { _ = srv.Close(); <-served })
	return ln.Addr().String()
}

// add makes one more server with the routes.
func (w *world) add(id, region string, change func(*Config, *Deps), routes ...httpapi.Route) *server {
	w.t.Helper()
	s := &server{id: id, view: &view{world: w, self: id}}
	s.view.dial = func(ctx context.Context, address string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
	cfg, deps := Config{Hold: time.Minute}, Deps{Servers: s.view, Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&cfg, &deps)
	}
	s.relay = New(cfg, deps)
	w.t.Cleanup(s.relay.Close)
	h := httpapi.Handler(httpapi.Config{
		Logger: deps.Log, Clock: clock.Wall{}, Relay: s.relay, Resolver: httpapi.OneToken("token"),
	}, face{s, routes})
	address := listen(w.t, FromPeer(h))
	s.http = listen(w.t, h)
	w.change(func() {
		w.list = append(w.list, Server{ID: id, Name: "name-" + id, Region: region, Address: address, HTTP: s.http, Alive: true, Voter: true})
	})
	return s
}

// client has connections of its own.
func client(t testing.TB) *http.Client {
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

type answer struct {
	status   int
	by, body string
	header   http.Header
}

func (s *server) ask(t *testing.T, method, path string, body io.Reader, headers ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.http+path, body)
	require.NoError(t, err)
	r.Header.Set("X-Nomad-Token", "token")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := client(t).Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return answer{res.StatusCode, res.Header.Get("Answered-By"), string(text), res.Header}
}
