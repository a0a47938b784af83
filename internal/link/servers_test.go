package link

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
)

// station is one of several servers.
type station struct {
	world
	id    string
	addr  string
	nodes *Nodes
	srv   *http.Server
	proxy *proxy

	mu      sync.Mutex // guards what follows
	servers []exchange.Server
	refuse  error
	pulls   int
	data    string // that it has for who fetches
	whole   bool   // that is all of it
}

func (s *station) Register(context.Context, *drover.Node) (exchange.Registration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return exchange.Registration{TTL: time.Second, Servers: s.servers}, s.refuse
}

// Pull waits like a server that has no news.
func (s *station) Pull(ctx context.Context, _ string, _ exchange.Seen, _ time.Duration) (exchange.Assignment, error) {
	s.mu.Lock()
	s.pulls++
	err := s.refuse
	s.mu.Unlock()
	if err != nil {
		return exchange.Assignment{}, err
	}
	<-ctx.Done()
	return exchange.Assignment{}, ctx.Err()
}

func (s *station) pulled() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pulls
}

// proxy passes what comes to a server until it is paused: then connections stay open, and nothing passes.
type proxy struct {
	net.Listener
	to     string
	paused chan struct{}
	conns  sync.WaitGroup

	accepted atomic.Int32
}

func (p *proxy) run() {
	for {
		c, err := p.Accept()
		if err != nil {
			return
		}
		p.accepted.Add(1)
		up, err := net.Dial("tcp", p.to)
		if err != nil {
			_ = c.Close()
			continue
		}
		p.conns.Go(func() { p.pass(c, up) }) // these end with the connections
		p.conns.Go(func() { p.pass(up, c) })
	}
}

func (p *proxy) pass(from, to net.Conn) {
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		select {
		case <-p.paused:
			if err == nil {
				continue
			}
		default:
		}
		if n > 0 {
			_, _ = to.Write(buf[:n])
		}
		if err != nil {
			_ = to.Close()
			return
		}
	}
}

func newStation(t *testing.T, id string) *station {
	t.Helper()
	s := &station{id: id, nodes: NewNodes()}
	s.nodes.Identify(id)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	s.srv = &http.Server{Handler: Handler(s, s, s.nodes), Protocols: &protocols}
	go func() { _ = s.srv.Serve(l) }() // ends with Close
	front, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.proxy = &proxy{Listener: front, to: l.Addr().String(), paused: make(chan struct{})}
	s.addr = front.Addr().String()
	go s.proxy.run() // ends with the listener
	t.Cleanup(func() { s.stop(); s.proxy.conns.Wait() })
	return s
}

func (s *station) stop() {
	_ = s.proxy.Close()
	_ = s.srv.Close()
}

// stations are three servers that tell of each other.
func stations(t *testing.T) []*station {
	t.Helper()
	var out []*station
	var list []exchange.Server
	for i := range 3 {
		s := newStation(t, fmt.Sprint("s", i))
		out = append(out, s)
		list = append(list, exchange.Server{ID: s.id, Address: s.addr})
	}
	for _, s := range out {
		s.servers = list
	}
	return out
}

// quiet is a node that has nothing.
type quiet struct{ exchange.Workloads }

func (quiet) CollectGarbage(context.Context, string) error { return nil }

// keeps runs a node's side of the link to servers until the test ends.
func keeps(t *testing.T, kept string, servers ...string) *Dialed {
	t.Helper()
	d := Dial(DialConfig{
		Servers: servers, Kept: kept, Identity: Identity{NodeID: "n1", Secret: "s-n1"}, Clock: &ahead{}, Log: slog.New(slog.DiscardHandler),
		Tokens: func(context.Context, string) (exchange.Tokens, error) { return exchange.Tokens{Join: "join"}, nil },
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx, quiet{}) }() // ends with stop
	t.Cleanup(func() { stop(); require.NoError(t, <-ended) })
	return d
}

// ahead is a clock that can be put forward.
type ahead struct {
	clock.Wall
	by atomic.Int64
}

func (a *ahead) Now() time.Time { return a.Wall.Now().Add(time.Duration(a.by.Load())) }

// reached waits until the node can be asked through the server.
func reached(t *testing.T, s *station) {
	t.Helper()
	require.Eventually(t, func() bool {
		w, err := s.nodes.Workloads("n1")
		return err == nil && w.CollectGarbage(t.Context(), "a") == nil
	}, time.Minute, time.Millisecond)
}

func TestANodeLearnsAllServers(t *testing.T) {
	list, kept := stations(t), filepath.Join(t.TempDir(), "servers.json")
	d := keeps(t, kept, list[0].addr)
	_, err := d.Register(t.Context(), &drover.Node{ID: "n1"})
	require.NoError(t, err)
	for _, s := range list {
		reached(t, s)
	}
	addrs := func(d *Dialed) (out []string) {
		for _, s := range d.list {
			out = append(out, s.address)
		}
		return out
	}
	all := []string{list[0].addr, list[1].addr, list[2].addr}
	same := DialConfig{Servers: []string{list[0].addr}, Kept: kept, Log: slog.New(slog.DiscardHandler)}
	require.ElementsMatch(t, all, addrs(Dial(same)), "it remembers them")
	other := same
	other.Servers = []string{"elsewhere:1"}
	require.Equal(t, other.Servers, addrs(Dial(other)), "those of other servers say nothing")
	require.NoError(t, os.WriteFile(kept, []byte("torn"), 0o600))
	require.Equal(t, same.Servers, addrs(Dial(same)))

	d.Learn([]exchange.Server{{ID: "s1", Address: list[1].addr}})
	require.Eventually(t, func() bool { _, err := list[2].nodes.Workloads("n1"); return err != nil }, time.Minute, time.Millisecond,
		"a server that is not there any more is forgotten")
	reached(t, list[0])
	reached(t, list[1])
}

// Whoever a node speaks with dies, stands still or refuses: the question that it holds goes to another server.
func TestANodeMovesToAnotherServer(t *testing.T) {
	for name, end := range map[string]func(*station){
		"killed": func(s *station) { s.stop() },
		"paused": func(s *station) { close(s.proxy.paused) },
		"refuses": func(s *station) {
			s.mu.Lock()
			s.refuse = drover.Errorf(drover.NotLeader, "this server does not lead")
			s.mu.Unlock()
		},
	} {
		t.Run(name, func(t *testing.T) {
			list := stations(t)
			d := keeps(t, "", list[0].addr)
			_, err := d.Register(t.Context(), &drover.Node{ID: "n1"})
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { // ends with cancel
				defer close(ended)
				for ctx.Err() == nil {
					_, _ = d.Pull(ctx, "n1", exchange.Seen{Index: 1}, time.Minute)
				}
			}()
			defer func() { cancel(); <-ended }()
			for _, s := range list {
				reached(t, s)
			}
			at := asked(t, list, nil, map[*station]int{})
			before := map[*station]int{}
			for _, s := range list {
				before[s] = s.pulled()
			}
			end(at)
			if name == "refuses" { // the question that it holds is let go
				require.NoError(t, d.Push(ctx, "n1", nil))
				_, _ = d.Register(ctx, &drover.Node{ID: "n1"})
			}
			require.NotEqual(t, at.id, asked(t, list, at, before).id)
		})
	}
}

// A node goes back to the server that it prefers, once that is there for a while.
func TestANodeGoesBack(t *testing.T) {
	list := stations(t)
	d := keeps(t, "", list[0].addr, list[1].addr, list[2].addr)
	_, err := d.Register(t.Context(), &drover.Node{ID: "n1"})
	require.NoError(t, err)
	for _, s := range list {
		reached(t, s)
	}
	beat := func() string {
		_, err := d.Register(t.Context(), &drover.Node{ID: "n1"})
		require.NoError(t, err)
		s, _, _ := d.mainServer()
		return s.address
	}
	d.cfg.Clock.(*ahead).by.Add(int64(settled))
	beat()
	first := beat()
	require.Equal(t, d.list[0].address, first, "all are there for long")
	d.leave(d.list[0], drover.Errorf(drover.Unavailable, "busy"))
	require.Equal(t, d.list[1].address, beat())
	require.Equal(t, d.list[1].address, beat(), "not at once")
	d.cfg.Clock.(*ahead).by.Add(int64(settled))
	beat()
	require.Equal(t, first, beat())
}

// asked waits until the node has asked a server that is not left once more than before, and returns it.
func asked(t *testing.T, list []*station, left *station, before map[*station]int) *station {
	t.Helper()
	var found *station
	require.Eventually(t, func() bool {
		for _, s := range list {
			if s != left && s.pulled() > before[s] {
				found = s
			}
		}
		return found != nil
	}, time.Minute, time.Millisecond)
	return found
}

// One server under two names has one tunnel: two would take each other's place for ever.
func TestAServerWithTwoAddresses(t *testing.T) {
	s := newStation(t, "s0")
	_, port, err := net.SplitHostPort(s.addr)
	require.NoError(t, err)
	d := keeps(t, "", s.addr, "localhost:"+port)
	_, err = d.Register(t.Context(), &drover.Node{ID: "n1"})
	require.NoError(t, err)
	one := func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.list[0].id == d.list[1].id && d.list[0].stands != d.list[1].stands
	}
	reached(t, s)
	require.Eventually(t, one, time.Minute, time.Millisecond)
	reached(t, s)
}
