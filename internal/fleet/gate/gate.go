package gate

import (
	"bytes"
	"context"
	"crypto/subtle"
	"crypto/tls"
	"log/slog"
	"sync"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/claims"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/fleet/pool"
	"github.com/drover-project/drover/internal/link"
	"github.com/drover-project/drover/internal/telemetry"
)

// State is what the gate reads, all of one moment. What is not known is nil.
type State interface {
	FleetIdentity() *fleet.Identity
	FleetInstance(id string) *fleet.InstanceRecord
	FleetPool(name string) *fleet.Pool
	Node(id string) *drover.Node
	Revocation(id string) *cluster.Revocation
}

// Log is what the gate writes.
type Log interface {
	// BindNode records that the instance's token belongs to the node. Errors: Conflict if it is another's, NotFound.
	BindNode(ctx context.Context, instance, node string) error
}

// Config says who joins without being a machine of the fleet.
type Config struct {
	JoinToken string // that nodes show; never empty unless Certified
	Certified bool   // whoever reaches the links has shown a certificate of the configured authority
	// Strict refuses nodes that neither are machines of the fleet nor were introduced.
	Strict bool
	// Warn has nodes logged that came in without an introduction.
	Warn bool
	// Own is the authority of servers that certify ordinary nodes, too; nil where the configuration names another one.
	Own *Authority
	// Buys says that machines may come, even where the state does not know yet by which key they are known.
	Buys bool
}

// Deps is what a Gate needs of others.
type Deps struct {
	State  func() State // of now
	Log    Log
	Clock  clock.Clock
	Logger *slog.Logger
	// Verify reads the identities that this cluster signed: of nodes, and of machines that are introduced. nil: there are none.
	Verify func(token string) (*claims.Claims, error)
}

// Gate admits nodes. It may be used by several goroutines at once.
type Gate struct {
	cfg     Config
	deps    Deps
	refused telemetry.Seldom
	came    telemetry.Seldom

	mu        sync.Mutex
	authority *Authority // guarded by mu; nil until the fleet has a key
	key       []byte     // that the authority is made from; guarded by mu
}

// New returns a gate.
func New(cfg Config, deps Deps) *Gate { return &Gate{cfg: cfg, deps: deps} }

// Admit decides whether a node with these tokens may register, and marks the node as the machine that the token is of, if it
// is one's. Whatever the node itself says about being a machine is removed. A refusal is logged for the operator of the
// server; the operator of the node hears it there. Errors: Unauthorized.
func (g *Gate) Admit(tokens exchange.Tokens, node *drover.Node) error {
	err := g.admit(tokens, node)
	if err != nil {
		g.refused.Warn(g.deps.Logger, g.deps.Clock.Now(), "a node was not admitted", "node", node.ID, "name", node.Name, "error", err)
	}
	return err
}

func (g *Gate) admit(tokens exchange.Tokens, node *drover.Node) error {
	for _, name := range []string{AttributeInstance, AttributePool, AttributeTemplate} {
		delete(node.Attributes, name)
	}
	s := g.deps.State()
	if r := s.Revocation(cluster.RevokedNode(node.ID)); r != nil {
		return r.Refusal()
	}
	if who := s.FleetIdentity(); who != nil {
		if id, err := pool.IntentOf(who.Key, tokens.Join); err == nil {
			return admitMachine(node, s.FleetInstance(id), s)
		}
	}
	if tokens.Introduction == "" || g.deps.Verify == nil {
		return g.stranger(tokens.Join, node)
	}
	err := g.introduced(tokens.Introduction, node, s)
	if err != nil && tokens.Join != "" && !g.cfg.Strict { // it may be one from before it was removed, or before the cluster lost its keys
		return g.stranger(tokens.Join, node)
	}
	return err
}

// stranger decides about a node that was not introduced.
func (g *Gate) stranger(token string, node *drover.Node) error {
	switch {
	case g.cfg.Strict:
		return drover.Errorf(drover.Unauthorized, "server.client_introduction.enforcement is strict: %s", giveIntroduction)
	case g.cfg.JoinToken == "" && g.cfg.Certified,
		g.cfg.JoinToken != "" && subtle.ConstantTimeCompare([]byte(g.cfg.JoinToken), []byte(token)) == 1:
		if g.cfg.Warn && node.Name != "" { // it registers
			g.came.Warn(g.deps.Logger, g.deps.Clock.Now(), "a node comes without an introduction", "node", node.ID, "name", node.Name)
		}
		return nil
	case token == "":
		return drover.Errorf(drover.Unauthorized, "a join token is needed, and this node has none: %s", giveToken)
	}
	return drover.Errorf(drover.Unauthorized, "wrong join token: %s", giveToken)
}

// giveToken is what a person does about a node that is refused.
const giveToken = "give it the server's (its server.join_token, else what it keeps in the file join-token of its data_dir) " +
	"as -join-token, DROVER_JOIN_TOKEN, client.join_token or client.join_token_file"

func admitMachine(node *drover.Node, i *fleet.InstanceRecord, s State) error {
	switch {
	case i == nil || i.State == fleet.InstanceGone:
		return errGone()
	case i.NodeID != "" && i.NodeID != node.ID:
		return drover.Errorf(drover.Unauthorized, "the token of machine %s was used by node %s: it is good for one node", i.ID, i.NodeID)
	}
	if node.Attributes == nil {
		node.Attributes = map[string]string{}
	}
	node.Attributes[AttributeInstance], node.Attributes[AttributePool], node.Attributes[AttributeTemplate] = i.ID, i.Pool, i.Template
	p := s.FleetPool(i.Pool)
	if p == nil {
		return nil // an orphan: it may finish what runs on it
	}
	node.NodePool = p.Policy.NodePool
	for _, o := range p.Policy.Offerings() {
		if o.Key == i.Offering {
			node.Attributes[AttributeType], node.Attributes[AttributeZone], node.Attributes[AttributeMarket] = o.Type, o.Zone, o.Market
		}
	}
	return nil
}

func errGone() error {
	return drover.Errorf(drover.Unauthorized, "the token is of a machine that the fleet does not have any more")
}

// Revoked refuses a node, or a machine, that was revoked. Errors: Unauthorized.
func (g *Gate) Revoked(id string) error {
	if r := g.deps.State().Revocation(cluster.RevokedNode(id)); r != nil {
		return r.Refusal()
	}
	return nil
}

// Authenticate checks the secret that a registered node shows. Errors: NotFound; Unauthorized, also for a node that was revoked.
func (g *Gate) Authenticate(nodeID, secret string) error {
	if err := g.Revoked(nodeID); err != nil {
		return err
	}
	n := g.deps.State().Node(nodeID)
	if n == nil {
		return drover.Errorf(drover.NotFound, "node not found: register first")
	}
	if subtle.ConstantTimeCompare([]byte(n.SecretID), []byte(secret)) != 1 {
		return drover.Errorf(drover.Unauthorized, "node %s: wrong secret", nodeID)
	}
	return nil
}

// Vouches reports whether this server's own state says that a call may be answered, of who came over a connection with this state to the
// path. Who is not vouched for is a stranger, or somebody whom another server knows.
func (g *Gate) Vouches(conn *tls.ConnectionState, path string, who link.Caller) bool {
	node := &drover.Node{ID: who.NodeID}
	if path == link.EnrollPath {
		_, none := g.Machine(who.Tokens.Join)
		return none == nil || g.cfg.Own != nil && g.admit(who.Tokens, node) == nil
	}
	if conn != nil && len(conn.VerifiedChains) == 0 {
		return false
	}
	return g.Authenticate(who.NodeID, who.Secret) == nil || g.admit(who.Tokens, node) == nil
}

// Bind gives the token of a machine's node to that node for good. A node that is no machine of the fleet is left alone.
// Errors: Unauthorized if the token is another node's.
func (g *Gate) Bind(ctx context.Context, n *drover.Node) error {
	if id := n.Attributes[AttributeInstance]; id != "" {
		return g.bind(ctx, id, n.ID)
	}
	return nil
}

func (g *Gate) bind(ctx context.Context, instance, node string) error {
	if i := g.deps.State().FleetInstance(instance); i != nil && i.NodeID == node {
		return nil
	}
	err := g.deps.Log.BindNode(ctx, instance, node)
	if code := drover.CodeOf(err); code == drover.Conflict || code == drover.NotFound {
		err = drover.Errorf(drover.Unauthorized, "registering: %w", err)
	}
	return err
}

// Machine returns the machine that the token is of, if the fleet has it. Errors: Unauthorized; Unavailable before the
// fleet has a key.
func (g *Gate) Machine(token string) (string, error) {
	s := g.deps.State()
	who := s.FleetIdentity()
	if who == nil {
		return "", errNotOpen()
	}
	id, err := pool.IntentOf(who.Key, token)
	if err != nil {
		return "", err
	}
	if i := s.FleetInstance(id); i == nil || i.State == fleet.InstanceGone {
		return "", errGone()
	}
	return id, nil
}

// Authority returns the fleet's authority. Errors: Unavailable before the fleet has a key.
func (g *Gate) Authority() (*Authority, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	who := g.deps.State().FleetIdentity()
	if who == nil {
		return nil, errNotOpen()
	}
	if g.authority != nil && bytes.Equal(g.key, who.Key) { // a restored state may have another
		return g.authority, nil
	}
	a, err := NewAuthority(who.Key)
	if err == nil {
		g.authority, g.key = a, who.Key
	}
	return a, err
}

func errNotOpen() error { return drover.Errorf(drover.Unavailable, "the fleet is not open yet") }

// Own implements Registrar.
func (g *Gate) Own() *Authority { return g.cfg.Own }

// Certify gives a machine its certificate for its token. The first node that asks has the token from then on; later only
// that node is given another certificate, if it knows its secret. Where servers have an authority of their own, an ordinary node is
// given one for what lets it register. Errors: Invalid, Unauthorized, Unavailable.
func (g *Gate) Certify(ctx context.Context, who link.Applicant, request []byte) ([]byte, error) {
	id, none := g.Machine(who.Tokens.Join)
	if none == nil {
		if err := g.Revoked(id); err != nil {
			return nil, err
		}
	}
	if none != nil {
		if g.cfg.Own == nil {
			return nil, none
		}
		err := g.Admit(who.Tokens, &drover.Node{ID: who.NodeID})
		if err != nil && drover.CodeOf(none) == drover.Unavailable && g.cfg.Buys {
			return nil, none // it may be a machine
		}
		if err != nil {
			return nil, err
		}
	}
	if who.NodeID == "" {
		return nil, drover.Errorf(drover.Invalid, "node: must be set")
	}
	if err := g.Authenticate(who.NodeID, who.Secret); err != nil && drover.CodeOf(err) != drover.NotFound {
		return nil, err
	}
	if none != nil {
		return g.cfg.Own.certify(request, who.NodeID, g.deps.Clock.Now(), certified)
	}
	a, err := g.Authority()
	if err != nil {
		return nil, err
	}
	cert, err := a.Certify(request, id, g.deps.Clock.Now())
	if err != nil {
		return nil, err
	}
	return cert, g.bind(ctx, id, who.NodeID)
}
