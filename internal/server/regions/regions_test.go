package regions

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/federation"
	"github.com/drover-project/drover/internal/control/fsm"
	"github.com/drover-project/drover/internal/control/members"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/peercall"
	"github.com/drover-project/drover/internal/server/servers"
	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/secrets"
	"github.com/drover-project/drover/tenancy"
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
func serve(t *testing.T, name, region, authority string, with ...func(*Deps)) (*one, *Regions) {
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
	d := Deps{
		Servers: o, Log: o, Store: s, Region: region, Authority: authority, Clock: clock.Wall{}, Logger: slog.New(slog.DiscardHandler),
		IDs: id.Random{}, Methods: &vault{},
	}
	for _, f := range with {
		f(&d)
	}
	r := New(d)
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

// vault keeps secrets of auth methods. It is locked where it cannot give them.
type vault struct{ locked atomic.Bool }

func (v *vault) Open(_ context.Context, m *acl.AuthMethod) (*acl.AuthMethod, error) {
	switch {
	case m.Sealed == nil:
		return m, nil
	case v.locked.Load():
		return nil, drover.Errorf(drover.Unavailable, "locked")
	}
	return m.WithSecrets(acl.MethodSecrets{OIDCClientSecret: acl.Secret(m.Sealed.Data)}), nil
}

func (v *vault) Seal(_ context.Context, m *acl.AuthMethod) (*acl.AuthMethod, error) {
	out := m.WithoutSecrets()
	if m.Config.OIDCClientSecret != "" {
		out.Sealed = &acl.SealedSecrets{KeyID: "key", Data: []byte(m.Config.OIDCClientSecret)}
	}
	return out, nil
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
	_, _, err := leads.Propose(t.Context(), &command.UpsertNamespaces{Namespaces: []*tenancy.Namespace{{Name: "team"}}})
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
	_, err := answers.answer(t.Context(), federation.Ask{})
	require.Equal(t, drover.NotLeader, drover.CodeOf(err))

	here, r := serve(t, "b1", "b", "a")
	_, err = r.pull(t.Context(), 0, "")
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	require.ErrorContains(t, err, `no server of region "a"`)
	here.members = []members.Member{there.member(members.Alive)}
	_, err = r.pull(t.Context(), 0, "")
	require.Equal(t, drover.NotLeader, drover.CodeOf(err), "the other region has no leader: %v", err)
}

// withToken asks with a replication token.
func withToken(token acl.Secret) func(*Deps) { return func(d *Deps) { d.Replication = token } }

// Access control goes to who has a management token alone, and the secrets of auth methods with it. One whose secrets cannot be decrypted
// holds nothing else up, and nothing that is here goes because of it.
func TestAccessControlNeedsTheReplicationToken(t *testing.T) {
	t.Parallel()
	safe := &vault{}
	there, answers := serve(t, "a1", "a", "a", func(d *Deps) { d.Own, d.Methods = "configured", safe })
	there.leader = there
	put := func(o *one, c command.Command) {
		_, _, err := o.Propose(t.Context(), c)
		require.NoError(t, err)
	}
	method := func(name, secret string) *command.UpsertAuthMethods {
		m := &acl.AuthMethod{Name: name, Type: acl.MethodOIDC, Config: &acl.AuthMethodConfig{OIDCClientSecret: acl.Secret(secret)}}
		m, _ = safe.Seal(t.Context(), m)
		return &command.UpsertAuthMethods{Methods: []*acl.AuthMethod{m}}
	}
	token := func(accessor, kind string, global bool, end *time.Time) *command.UpsertACLTokens {
		return &command.UpsertACLTokens{Tokens: []*acl.Token{{
			AccessorID: accessor, SecretID: acl.Secret("secret of " + accessor), Type: kind, Global: global, ExpirationTime: end,
		}}}
	}
	active := secrets.RootKeyMeta{KeyID: "key", State: secrets.Active}
	put(there, &command.PutRootKey{Key: &secrets.RootKey{RootKeyMeta: active, Wrapped: []secrets.Wrapped{{}}}})
	put(there, token("m", acl.ManagementToken, false, nil))
	put(there, token("g", acl.ClientToken, true, nil))
	put(there, token("old", acl.ManagementToken, false, new(time.Unix(1, 0))))
	put(there, method("one", "hush"))
	put(there, method("two", "hush"))

	for _, refused := range []acl.Secret{"secret of g", "secret of old", "made up"} {
		here, r := serve(t, "b1", "b", "a", withToken(refused))
		here.members = []members.Member{there.member(members.Alive)}
		_, err := r.pull(t.Context(), 0, "")
		require.Equal(t, drover.Forbidden, drover.CodeOf(err), string(refused))
	}
	whole := federation.Digest("secret of m")
	for n := range whole { // who could ask for the beginning of a digest would find out digests byte by byte
		_, err := answers.answer(t.Context(), federation.Ask{Token: whole[:n:n]})
		require.Equal(t, drover.Forbidden, drover.CodeOf(err), "%d bytes of the digest", n)
	}
	here, plain := serve(t, "b1", "b", "a")
	here.members = []members.Member{there.member(members.Alive)}
	got, err := plain.pull(t.Context(), 0, "")
	require.NoError(t, err)
	require.Nil(t, got.Access, "without a token")

	for _, taken := range []acl.Secret{"secret of m", "configured"} {
		here, r := serve(t, "b1", "b", "a", withToken(taken))
		here.members = []members.Member{there.member(members.Alive)}
		got, err := r.pull(t.Context(), 0, "")
		require.NoError(t, err)
		require.Equal(t, []string{"g"}, got.Access.Tokens.Keys, "no local one")
		require.Equal(t, acl.Secret("hush"), got.Access.Methods.Have[0].Config.OIDCClientSecret)
		require.NotEmpty(t, got.Epoch)
		safe.locked.Store(true)
		got, err = r.pull(t.Context(), 0, "")
		require.NoError(t, err)
		require.Empty(t, got.Epoch)
		require.Equal(t, []string{"one", "two"}, got.Access.Methods.Keys)
		require.Empty(t, got.Access.Methods.Have)
		require.Len(t, got.Access.Tokens.Have, 1)
		safe.locked.Store(false)
	}
}
