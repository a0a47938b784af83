package gate

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/fleet/pool"
)

// world is a fake state and log: one fleet with pool std, whose machine is i1.
type world struct {
	identity  *fleet.Identity
	instances map[string]*fleet.InstanceRecord
	pools     map[string]*fleet.Pool
	nodes     map[string]*drover.Node
	revoked   map[string]*cluster.Revocation
	binds     int
	logs      strings.Builder
}

var key = []byte("0123456789abcdef0123456789abcdef")

func newWorld() *world {
	policy := &fleet.Policy{
		Name: "std", NodePool: "cloud", Provider: "p", Zones: []string{"a"}, Types: []fleet.InstanceType{{Name: "t", Price: 1}},
	}
	return &world{
		identity: &fleet.Identity{Owner: "me", Key: key},
		instances: map[string]*fleet.InstanceRecord{
			"i1": {Durable: fleet.Durable{ID: "i1", Pool: "std", Template: "x", Offering: "p/t/a/on-demand", State: fleet.InstanceBooting}},
		},
		pools: map[string]*fleet.Pool{"std": {Name: "std", Policy: policy}},
		nodes: map[string]*drover.Node{},
	}
}

func (w *world) FleetIdentity() *fleet.Identity                        { return w.identity }
func (w *world) FleetInstance(id string) *fleet.InstanceRecord         { return w.instances[id] }
func (w *world) FleetPool(name string) *fleet.Pool                     { return w.pools[name] }
func (w *world) Node(id string) *drover.Node                           { return w.nodes[id] }
func (w *world) Revocation(id string) *cluster.Revocation              { return w.revoked[id] }
func (w *world) token(instance string) string                          { return pool.Token(key, instance) }
func (w *world) with(cfg Config) *Gate                                 { return New(cfg, w.deps()) }
func (w *world) BindNode(_ context.Context, instance, id string) error { return w.bind(instance, id) }

func (w *world) deps() Deps {
	return Deps{State: func() State { return w }, Log: w, Clock: clock.Wall{}, Logger: slog.New(slog.NewTextHandler(&w.logs, nil))}
}

// bind does what the raft log does.
func (w *world) bind(instance, node string) error {
	w.binds++
	i := w.instances[instance]
	switch {
	case i == nil || i.State == fleet.InstanceGone:
		return drover.Errorf(drover.NotFound, "no machine %s", instance)
	case i.NodeID != "" && i.NodeID != node:
		return drover.Errorf(drover.Conflict, "machine %s is of node %s", instance, i.NodeID)
	}
	next := *i
	next.NodeID = node
	w.instances[instance] = &next
	return nil
}

func unauthorized(t *testing.T, err error, text string) {
	t.Helper()
	require.Equal(t, drover.Unauthorized, drover.CodeOf(err), "%v", err)
	require.ErrorContains(t, err, text)
}

// No server lets a node in for nothing, but for one that has shown a certificate.
func TestNobodyIsAdmittedWithoutAToken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		token     string
		certified bool
		shown     string
		refused   string
	}{
		{"", false, "", "a join token is needed"},
		{"", false, "x", "wrong join token"},
		{"secret", false, "", "a join token is needed"},
		{"secret", false, "secre", "wrong join token"},
		{"secret", false, "secret", ""},
		{"", true, "", ""},
		{"secret", true, "", "a join token is needed"},
	} {
		w := newWorld()
		w.identity = nil
		err := w.with(Config{JoinToken: c.token, Certified: c.certified}).Admit(exchange.Tokens{Join: c.shown}, &drover.Node{ID: "n"})
		if c.refused == "" {
			require.NoError(t, err)
			require.Empty(t, w.logs.String())
			continue
		}
		unauthorized(t, err, c.refused)
		require.ErrorContains(t, err, "-join-token", "it says what to do")
		require.Contains(t, w.logs.String(), "a node was not admitted")
	}
}

func TestAMachinesTokenMarksItsNode(t *testing.T) {
	t.Parallel()
	w := newWorld()
	g := w.with(Config{JoinToken: "secret"})
	n := &drover.Node{ID: "n1", NodePool: "mine"}
	require.NoError(t, g.Admit(exchange.Tokens{Join: w.token("i1")}, n))
	require.Equal(t, "cloud", n.NodePool)
	require.Equal(t, map[string]string{
		AttributeInstance: "i1", AttributePool: "std", AttributeTemplate: "x", AttributeType: "t", AttributeZone: "a",
		AttributeMarket: "on-demand",
	}, n.Attributes)
	require.NoError(t, g.Bind(t.Context(), n))
	require.Equal(t, "n1", w.instances["i1"].NodeID)
	require.NoError(t, g.Bind(t.Context(), n))
	require.Equal(t, 1, w.binds, "a binding that is there is not written again")
}

func TestARogueNodeCannotClaimToBeAMachine(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.pools["rich"] = &fleet.Pool{Name: "rich", Policy: &fleet.Policy{Name: "rich", NodePool: "vault"}}
	g := w.with(Config{JoinToken: "secret"})
	claims := func() *drover.Node {
		return &drover.Node{ID: "n0", NodePool: "mine", Attributes: map[string]string{
			AttributeInstance: "i1", AttributePool: "rich", AttributeTemplate: "x", "cpu.arch": "amd64",
		}}
	}
	n := claims()
	unauthorized(t, g.Admit(exchange.Tokens{Join: "wrong"}, n), "wrong join token")
	n = claims()
	require.NoError(t, g.Admit(exchange.Tokens{Join: "secret"}, n))
	require.Equal(t, map[string]string{"cpu.arch": "amd64"}, n.Attributes, "it joins as any other node")
	require.Equal(t, "mine", n.NodePool)
	require.NoError(t, g.Bind(t.Context(), n))
	require.Zero(t, w.binds)

	n = claims() // a machine of one pool that claims another pool, and so that pool's node pool
	require.NoError(t, g.Admit(exchange.Tokens{Join: w.token("i1")}, n))
	require.Equal(t, "std", n.Attributes[AttributePool])
	require.Equal(t, "cloud", n.NodePool)

	id, signature, _ := strings.Cut(w.token("i1"), ".")
	w.instances["i2"] = &fleet.InstanceRecord{Durable: fleet.Durable{ID: "i2", Pool: "rich", State: fleet.InstanceBooting}}
	for _, forged := range []string{"i2." + signature, id + ".", id, "." + signature, pool.Token([]byte("another fleet's"), "i1")} {
		unauthorized(t, g.Admit(exchange.Tokens{Join: forged}, claims()), "wrong join token")
	}
}

func TestAMachinesTokenIsGoodForOneNode(t *testing.T) {
	t.Parallel()
	w := newWorld()
	g := w.with(Config{JoinToken: "secret"})
	first, second := &drover.Node{ID: "n1"}, &drover.Node{ID: "n2"}
	require.NoError(t, g.Admit(exchange.Tokens{Join: w.token("i1")}, first))
	require.NoError(t, g.Admit(exchange.Tokens{Join: w.token("i1")}, second), "both call before either is bound")
	require.NoError(t, g.Bind(t.Context(), first))
	unauthorized(t, g.Bind(t.Context(), second), "registering: ")
	unauthorized(t, g.Admit(exchange.Tokens{Join: w.token("i1")}, &drover.Node{ID: "n2"}), "it is good for one node")
	require.NoError(t, g.Admit(exchange.Tokens{Join: w.token("i1")}, &drover.Node{ID: "n1"}), "the node comes back after a restart")

	gone := *w.instances["i1"]
	gone.State = fleet.InstanceGone
	w.instances["i1"] = &gone
	unauthorized(t, g.Admit(exchange.Tokens{Join: w.token("i1")}, &drover.Node{ID: "n1"}), "does not have any more")
	unauthorized(t, g.Bind(t.Context(), &drover.Node{ID: "n3", Attributes: first.Attributes}), "no machine i1")
	delete(w.instances, "i1")
	unauthorized(t, g.Admit(exchange.Tokens{Join: w.token("i1")}, &drover.Node{ID: "n1"}), "does not have any more")
}

// A machine of a pool that was deleted may finish what runs on it.
func TestAnOrphanIsAdmitted(t *testing.T) {
	t.Parallel()
	w := newWorld()
	clear(w.pools)
	n := &drover.Node{ID: "n1", NodePool: "mine"}
	require.NoError(t, w.with(Config{JoinToken: "secret"}).Admit(exchange.Tokens{Join: w.token("i1")}, n))
	require.Equal(t, "i1", n.Attributes[AttributeInstance])
	require.Equal(t, "mine", n.NodePool)
}

func TestRefusalsAreLoggedSeldom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		g := w.with(Config{JoinToken: "secret"})
		for range 5 {
			require.Error(t, g.Admit(exchange.Tokens{Join: ""}, &drover.Node{ID: "n"}))
		}
		require.Equal(t, 1, strings.Count(w.logs.String(), "a node was not admitted"))
		time.Sleep(time.Hour)
		require.Error(t, g.Admit(exchange.Tokens{Join: ""}, &drover.Node{ID: "n"}))
		require.Equal(t, 2, strings.Count(w.logs.String(), "a node was not admitted"))
	})
}

func TestANodeShowsItsSecret(t *testing.T) {
	t.Parallel()
	w := newWorld()
	g := w.with(Config{})
	require.Equal(t, drover.NotFound, drover.CodeOf(g.Authenticate("n1", "s")))
	w.nodes["n1"] = &drover.Node{ID: "n1", SecretID: "s"}
	require.NoError(t, g.Authenticate("n1", "s"))
	unauthorized(t, g.Authenticate("n1", "x"), "wrong secret")
	unauthorized(t, g.Authenticate("n1", ""), "wrong secret")
}
