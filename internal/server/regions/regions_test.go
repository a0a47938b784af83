package regions

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/peercall"
	"github.com/drover-project/drover/internal/server/servers"
	"github.com/drover-project/drover/internal/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// one is a server with a state of its own, which other servers call over a socket.
type one struct {
	t       *testing.T
	self    servers.Server
	leader  *one // nil: none
	members []members.Member
	mux     *peercall.Mux
	client  *peercall.Client
	store   *store.Store
	fsm     *fsm.FSM
	index   uint64
}

func (o *one) Self() servers.Server      { return o.self }
func (o *one) Members() []members.Member { return o.members }
func (o *one) Client() *peercall.Client  { return o.client }
func (o *one) Mux() *peercall.Mux        { return o.mux }

func (o *one) Leader() (servers.Server, bool) {
	if o.leader == nil {
		return servers.Server{}, false
	}
	return o.leader.self, true
}

func (o *one) Ready(context.Context) error                            { return nil }
func (o *one) Follow(ctx context.Context, lead func(context.Context)) { lead(ctx) }

func (o *one) Propose(_ context.Context, c command.Command) (uint64, any, error) {
	data, err := command.Encode(c)
	require.NoError(o.t, err)
	o.index++
	result, err := o.fsm.Apply(o.index, data)
	return o.index, result, err
}

// serve returns a server of the region and its Regions.
func serve(t *testing.T, name, region, authority string) (*one, *Regions) {
	t.Helper()
	var dialer net.Dialer
	dial := func(ctx context.Context, address string) (net.Conn, error) {
		return dialer.DialContext(ctx, "tcp", address)
	}
	s := store.New()
	o := &one{t: t, mux: peercall.NewMux(), client: peercall.NewClient(name, dial, clock.Wall{}), store: s, fsm: fsm.New(s, nil)}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	o.self = servers.Server{ID: name, Name: name, Region: region, Address: ln.Addr().String(), Alive: true}
	r := New(Deps{
		Servers: o, Log: o, Store: s, Authority: authority, Clock: clock.Wall{}, Logger: slog.New(slog.DiscardHandler),
	})
	srv := &http.Server{Handler: peercall.Identified(o.mux), ConnContext: peercall.ConnContext, ReadHeaderTimeout: time.Minute}
	served := make(chan struct{})
	go func() { defer close(served); _ = srv.Serve(ln) }() // ends with the test
	t.Cleanup(func() {
		o.client.Close()
		_ = srv.Close()
		<-served
	})
	return o, r
}

// member is the server as the gossip of other regions knows it.
func (o *one) member(status members.Status) members.Member {
	return members.Member{Status: status, Self: members.Self{ID: o.self.ID, Region: o.self.Region, RPCAddr: o.self.Address}}
}

// A region takes over what a server of the authoritative one says, which asks its own leader, and passes over servers that are gone.
func TestARegionAsksTheAuthoritativeOne(t *testing.T) {
	t.Parallel()
	leads, _ := serve(t, "a1", "a", "a")
	follows, _ := serve(t, "a2", "a", "a")
	leads.leader, follows.leader = leads, leads
	_, _, err := leads.Propose(t.Context(), &command.UpsertNamespaces{Namespaces: []*drover.Namespace{{Name: "team"}}})
	require.NoError(t, err)

	here, r := serve(t, "b1", "b", "a")
	gone := members.Member{Status: members.Failed, Self: members.Self{ID: "a3", Region: "a", RPCAddr: "127.0.0.1:1"}}
	here.leader, here.members = here, []members.Member{here.member(members.Alive), gone, follows.member(members.Alive)}
	changed := here.store.Watch(tables.Namespaces, "")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }() // ends with ctx
	select {
	case <-changed:
	case <-time.After(time.Minute):
		t.Fatal("the namespace did not come over")
	}
	require.NotNil(t, here.store.Snapshot().Namespace("team"))
	cancel()
	require.NoError(t, <-ended)
}

// Without a server that could answer, both sides say what is missing.
func TestRegionsWithoutServers(t *testing.T) {
	t.Parallel()
	there, answers := serve(t, "a1", "a", "a")
	_, err := answers.answer(t.Context(), 0)
	require.Equal(t, drover.NotLeader, drover.CodeOf(err))

	here, r := serve(t, "b1", "b", "a")
	_, err = r.pull(t.Context(), 0)
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	require.ErrorContains(t, err, `no server of region "a"`)
	here.members = []members.Member{there.member(members.Alive)}
	_, err = r.pull(t.Context(), 0)
	require.Equal(t, drover.NotLeader, drover.CodeOf(err), "the other region has no leader: %v", err)
}
