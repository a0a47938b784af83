package nodes

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/link"
	"github.com/drover-project/drover/internal/peercall"
	"github.com/drover-project/drover/internal/server/servers"
	"github.com/drover-project/drover/internal/wake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// town is three servers that call each other over sockets, and what each of them knows.
type town struct {
	list    []*one
	changed wake.Broadcast
	leader  atomic.Pointer[one] // nil: there is none
}

// one is a server.
type one struct {
	*Front
	town   *town
	self   servers.Server
	mux    *peercall.Mux
	client *peercall.Client
	store  *store.Store
	fsm    *fsm.FSM
	stands chan struct{} // while it is open the server answers nothing; nil: it answers

	suspects chan string // of which the nodes are told

	mu     sync.Mutex // guards what follows
	beats  []string
	pushed map[string]int
	holds  string
}

func (o *one) Clustered() bool      { return true }
func (o *one) Self() servers.Server { return o.self }
func (o *one) Leader() (servers.Server, bool) {
	if l := o.town.leader.Load(); l != nil {
		return l.self, true
	}
	return servers.Server{}, false
}

func (o *one) List() (out []servers.Server) {
	for _, s := range o.town.list {
		out = append(out, s.self)
	}
	return out
}
func (o *one) Changed() <-chan struct{} { return o.town.changed.C() }
func (o *one) Client() *peercall.Client { return o.client }
func (o *one) Dial(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address)
}
func (o *one) Mux() *peercall.Mux          { return o.mux }
func (o *one) Ready(context.Context) error { return nil }
func (o *one) LastContact() time.Duration  { return time.Second }
func (o *one) Holds(id string) bool        { o.mu.Lock(); defer o.mu.Unlock(); return o.holds == id }
func (o *one) hold(id string)              { o.mu.Lock(); defer o.mu.Unlock(); o.holds = id }
func (o *one) Leads() bool                 { return o.town.leader.Load() == o }
func (t *town) leads(o *one)               { t.leader.Store(o); t.changed.Send() }

// guarding decides on the state of the server.
type guarding struct{ *one }

func (guarding) Admit(exchange.Tokens, *drover.Node) error { return nil }

func (g guarding) Revoked(nodeID string) error {
	if r := g.store.Snapshot().Revocation(cluster.RevokedNode(nodeID)); r != nil {
		return r.Refusal()
	}
	return nil
}

func (g guarding) Authenticate(nodeID, secret string) error {
	n := g.store.Snapshot().Node(nodeID)
	if n == nil {
		return drover.Errorf(drover.NotFound, "register first")
	}
	if n.SecretID != secret {
		return drover.Errorf(drover.Unauthorized, "wrong secret")
	}
	return nil
}

// deciding is control of a server: it decides while that leads.
type deciding struct{ *one }

func (d deciding) Register(context.Context, *drover.Node) (exchange.Registration, error) {
	if !d.Leads() {
		return exchange.Registration{}, drover.Errorf(drover.NotLeader, "this server does not lead")
	}
	return exchange.Registration{TTL: time.Minute, Index: 7, Age: "a"}, nil
}

func (d deciding) Heartbeat(_ context.Context, nodeID string) (exchange.Registration, error) {
	if !d.Leads() {
		return exchange.Registration{}, drover.Errorf(drover.NotLeader, "this server does not lead")
	}
	if nodeID == "stranger" {
		return exchange.Registration{}, drover.Errorf(drover.NotFound, "node not found")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.beats = append(d.beats, nodeID)
	return exchange.Registration{TTL: time.Minute}, nil
}

func (d deciding) Pull(context.Context, string, exchange.Seen, time.Duration) (exchange.Assignment, error) {
	return exchange.Assignment{Index: 1}, nil
}

func (d deciding) Push(_ context.Context, nodeID string, updates []exchange.AllocUpdate) error {
	if !d.Leads() {
		return drover.Errorf(drover.NotLeader, "this server does not lead")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pushed[nodeID] += len(updates)
	return nil
}

func newTown(t *testing.T) *town {
	t.Helper()
	w := &town{}
	for _, id := range []string{"a", "b", "c"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		o := &one{
			town: w, self: servers.Server{ID: id, Address: l.Addr().String(), Alive: true}, mux: peercall.NewMux(),
			store: store.New(), pushed: map[string]int{}, suspects: make(chan string, 100),
		}
		o.fsm = fsm.New(o.store, nil)
		var d net.Dialer
		o.client = peercall.NewClient(id, func(ctx context.Context, address string) (net.Conn, error) {
			c, err := d.DialContext(ctx, "tcp", address)
			if err != nil {
				return nil, drover.Errorf(drover.Unavailable, "%w", err)
			}
			return c, nil
		}, clock.Wall{})
		o.Front = New(Deps{
			Servers: o, Control: deciding{o}, Gate: guarding{o}, Holds: o.Holds, Log: o, Store: o.store, Clock: clock.Wall{},
			Logger:  slog.New(slog.DiscardHandler),
			Suspect: func(serverID string) { o.suspects <- serverID },
		})
		handler := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if o.stands != nil {
				select {
				case <-o.stands:
				case <-r.Context().Done():
					return
				}
			}
			if strings.HasPrefix(r.URL.Path, link.PipePath) {
				link.NewNodes().Pipes(o.local).ServeHTTP(rw, r)
				return
			}
			o.mux.ServeHTTP(rw, r)
		})
		srv := &http.Server{ConnContext: peercall.ConnContext, Handler: peercall.Identified(handler)}
		go func() { _ = srv.Serve(l) }() // ends with Close
		t.Cleanup(func() { o.client.Close(); _ = srv.Close() })
		w.list = append(w.list, o)
	}
	w.leads(w.list[0])
	return w
}

// apply has the server's state take a command at that index.
func (o *one) apply(t *testing.T, index uint64, c command.Command) {
	t.Helper()
	data, err := command.Encode(c)
	require.NoError(t, err)
	_, err = o.fsm.Apply(index, data)
	require.NoError(t, err)
}

// Whatever server a node speaks with, the leader hears of it, and what the leader says of one node is not said to another.
func TestTheLeaderHearsOfAllNodes(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	leader, follower := w.list[0], w.list[1]
	reg, err := follower.Register(t.Context(), &drover.Node{ID: "n"})
	require.NoError(t, err)
	require.Equal(t, exchange.Registration{TTL: time.Minute, Index: 7, Age: "a"}, reg)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { // these end with the answers
			reg, err := follower.Heartbeat(t.Context(), "n")
			require.NoError(t, err)
			require.Equal(t, time.Minute, reg.TTL)
		})
		all.Go(func() { require.NoError(t, follower.Push(t.Context(), "n", make([]exchange.AllocUpdate, 2))) })
		all.Go(func() {
			_, err := follower.Heartbeat(t.Context(), "stranger")
			require.Equal(t, drover.NotFound, drover.CodeOf(err), "%v", err)
		})
	}
	all.Wait()
	_, err = leader.Heartbeat(t.Context(), "m")
	require.NoError(t, err)
	require.Len(t, leader.beats, 51)
	require.Equal(t, 100, leader.pushed["n"])
	require.Empty(t, follower.beats)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = follower.Heartbeat(canceled, "n")
	require.Equal(t, drover.Canceled, drover.CodeOf(err))
	_, err = follower.Heartbeat(t.Context(), "n")
	require.NoError(t, err, "behind what nobody waits for any more")
}

// A leader that stands still does not hold what nodes report once another leads, and neither does one that is not there yet.
func TestReportsGoToTheNextLeader(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	old, follower, next := w.list[0], w.list[1], w.list[2]
	old.stands = make(chan struct{})
	defer close(old.stands)
	done := make(chan error, 2)
	go func() { done <- follower.Push(t.Context(), "n", make([]exchange.AllocUpdate, 1)) }() // ends with the answer
	go func() { _, err := follower.Heartbeat(t.Context(), "n"); done <- err }()              // as above
	w.leads(nil)
	w.leads(next)
	require.NoError(t, <-done)
	require.NoError(t, <-done)
	require.Equal(t, 1, next.pushed["n"])
	require.Equal(t, []string{"n"}, next.beats)
	w.leads(follower)
	_, err := follower.Heartbeat(t.Context(), "n")
	require.NoError(t, err)
	require.Equal(t, []string{"n"}, follower.beats)
}

// Who a node is is decided on state that has what the leader's had; without a leader nobody can know.
func TestNobodyIsBelievedOnOldState(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	leader, follower := w.list[0], w.list[1]
	node := &command.RegisterNode{Node: &drover.Node{ID: "n", SecretID: "s", Status: drover.NodeStatusReady}}
	leader.apply(t, 1, node)
	done := make(chan error, 1)
	go func() { done <- follower.Authenticate(t.Context(), "n", "s") }() // ends when the state is there
	follower.apply(t, 1, node)
	require.NoError(t, <-done, "it waits for its state to be as new as the leader's")
	require.Equal(t, drover.Unauthorized, drover.CodeOf(follower.Authenticate(t.Context(), "n", "wrong")))
	w.leads(nil)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.Error(t, follower.Authenticate(ctx, "n", "s"), "the wrong secret took the belief away")
	w.leads(leader)
	require.NoError(t, follower.Authenticate(t.Context(), "n", "s"))
	w.leads(nil)
	require.NoError(t, follower.Authenticate(t.Context(), "n", "s"), "for a while")
}

// quiet is a node that has nothing.
type quiet struct{ exchange.Workloads }

func (quiet) CollectGarbage(context.Context, string) error { return nil }

func (o *one) local(nodeID string) exchange.Workloads {
	if !o.Holds(nodeID) {
		return nil
	}
	return quiet{}
}

// A node that a server does not reach is reached through another one, as soon as there is one.
func TestANodeIsReachedThroughAnotherServer(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	a, c := w.list[0], w.list[2]
	n := a.Through("n")
	require.Same(t, n, a.Through("n"))
	require.Equal(t, drover.Unavailable, drover.CodeOf(n.CollectGarbage(t.Context(), "x")))
	c.hold("n")
	require.NoError(t, n.CollectGarbage(t.Context(), "x"))
	n.(*link.Piped).Close()
}

func TestWhoReachesANode(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	a, b, c := w.list[0], w.list[1], w.list[2]
	require.Empty(t, a.Holder(t.Context(), "n"))
	c.hold("n")
	require.Equal(t, "c", a.Holder(t.Context(), "n"))
	b.hold("m")
	require.Equal(t, "b", b.Holder(t.Context(), "m"))
	c.self.Alive = false
	require.Empty(t, a.Holder(t.Context(), "n"))
}

// Who asks about an allocation that the leader just told of gets to the server that reaches its node.
func TestWhoAnswersForAnAllocation(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	a, b, c := w.list[0], w.list[1], w.list[2]
	c.hold("n")
	job := &drover.Job{ID: "j", Namespace: "default", TaskGroups: []*drover.TaskGroup{{Name: "g"}}}
	placed := &command.ApplyPlans{Plans: []command.PlanCommit{
		{Job: job, Placed: []*drover.Allocation{{ID: "x", Namespace: "default", JobID: "j", NodeID: "n", TaskGroup: "g"}}},
	}}
	a.apply(t, 5, placed) // it leads
	answered := make(chan string, 1)
	go func() { answered <- b.Owner(t.Context(), httpapi.AtAllocation, "x") }() // ends when b has what a has
	b.apply(t, 5, placed)
	require.Equal(t, "c", <-answered)
	require.Equal(t, "c", b.Owner(t.Context(), httpapi.AtNode, "n"))
	require.Empty(t, b.Owner(t.Context(), httpapi.AtAllocation, "unknown"))
}
