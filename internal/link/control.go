package link

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/link/wire"
)

const (
	nodeHeader   = "Drover-Node"
	secretHeader = "Drover-Node-Secret"
	tokenHeader  = "Drover-Join-Token"
	introHeader  = "Drover-Introduction"
	serverHeader = "Drover-Server" // the id of the server where a tunnel ends
	silentHeader = "Drover-Silent" // "true": the node says nothing in its tunnel until it is asked something, for however long
)

// Authenticator says whether a node is who it says it is. Errors: Unauthorized; Unavailable if this server cannot know.
type Authenticator interface {
	// Authenticate checks a registered node's secret. Errors: NotFound for one that has not registered; Unavailable if this server
	// cannot know.
	Authenticate(ctx context.Context, nodeID, secret string) error
	// Admit checks the tokens with which a node joins, and may mark on the node what follows from it. Of a node that
	// opens its tunnel before it registers, only the id is known.
	Admit(ctx context.Context, tokens exchange.Tokens, node *drover.Node) error
}

// mostAsked is how many bytes a node's message has at most.
const mostAsked = 64 << 20

// Handler serves the controller to nodes that dial. Tunnels are put into nodes. Who a request is of its headers say, which are checked
// before anything else of it is read.
func Handler(c exchange.Controller, auth Authenticator, nodes *Nodes) http.Handler {
	mux := http.NewServeMux()
	opts := connect.WithHandlerOptions(wire.HandlerOptions, connect.WithReadMaxBytes(mostAsked))
	wire.Unary(mux, procRegister, opts, func(ctx context.Context, h http.Header, r *registerRequest) (*exchange.Registration, error) {
		if r.Node == nil {
			return nil, drover.Errorf(drover.Invalid, "node: must be set")
		}
		if err := auth.Admit(ctx, CallerOf(h).Tokens, r.Node); err != nil {
			return nil, err
		}
		reply, err := c.Register(ctx, r.Node)
		return &reply, err
	})
	wire.Unary(mux, procHeartbeat, opts, func(ctx context.Context, h http.Header, r *nodeRequest) (*exchange.Registration, error) {
		if err := same(h, r.NodeID); err != nil {
			return nil, err
		}
		reply, err := c.Heartbeat(ctx, r.NodeID)
		return &reply, err
	})
	var made answers
	wire.Unary(mux, procPull, opts, func(ctx context.Context, h http.Header, r *nodeRequest) (*pullReply, error) {
		if err := same(h, r.NodeID); err != nil {
			return nil, err
		}
		a, err := c.Pull(ctx, r.NodeID, exchange.Seen{Index: r.Since, State: r.State, Age: r.Age}, r.MaxWait)
		if err != nil {
			return nil, err
		}
		return made.reply(a, r)
	})
	wire.Unary(mux, procPush, opts, func(ctx context.Context, h http.Header, r *nodeRequest) (*wire.Empty, error) {
		if err := same(h, r.NodeID); err != nil {
			return nil, err
		}
		return &wire.Empty{}, c.Push(ctx, r.NodeID, r.Updates)
	})
	if signs, ok := c.(exchange.Identities); ok {
		wire.Unary(mux, procSign, opts, func(ctx context.Context, h http.Header, r *signRequest) (*signReply, error) {
			if err := same(h, r.NodeID); err != nil {
				return nil, err
			}
			signed, err := signs.SignIdentities(ctx, r.NodeID, r.Wanted)
			return &signReply{signed}, err
		})
	}
	if looks, ok := c.(exchange.Lookups); ok {
		wire.Unary(mux, procLook, opts, func(ctx context.Context, h http.Header, r *lookRequest) (*lookReply, error) {
			if err := same(h, r.NodeID); err != nil {
				return nil, err
			}
			found, err := looks.Look(ctx, r.NodeID, r.Asked, r.MaxWait)
			return &lookReply{found}, err
		})
	}
	if drains, ok := c.(exchange.Drains); ok {
		wire.Unary(mux, procDrain, opts, func(ctx context.Context, h http.Header, r *drainRequest) (*wire.Empty, error) {
			if err := same(h, r.NodeID); err != nil {
				return nil, err
			}
			return &wire.Empty{}, drains.DrainSelf(ctx, r.NodeID, r.Spec)
		})
	}
	if migrates, ok := c.(exchange.Migrations); ok {
		mux.Handle(procFetch, fetchHandler(migrates, opts))
	}
	mux.Handle(procTunnel, connect.NewBidiStreamHandler(procTunnel, func(ctx context.Context, s *chunkStream) error {
		h := s.RequestHeader()
		if id := nodes.server(); id != "" {
			s.ResponseHeader().Set(serverHeader, id)
		}
		if err := s.Send(&wire.Chunk{}); err != nil { // says: accepted
			return err
		}
		return wire.Wrap(nodes.serve(ctx, h.Get(nodeHeader), s, h.Get(silentHeader) == "true"))
	}, opts))
	return knocking(auth, mux)
}

// same refuses a node that speaks for another. Errors: Unauthorized.
func same(h http.Header, nodeID string) error {
	if h.Get(nodeHeader) != nodeID {
		return drover.Errorf(drover.Unauthorized, "node %s speaks for %s", h.Get(nodeHeader), nodeID)
	}
	return nil
}

// Control is exchange.Controller as a node in another process sees it.
type Control struct {
	register  *connect.Client[registerRequest, exchange.Registration]
	heartbeat *connect.Client[nodeRequest, exchange.Registration]
	pull      *connect.Client[nodeRequest, pullReply]
	push      *connect.Client[nodeRequest, wire.Empty]
	sign      *connect.Client[signRequest, signReply]
	look      *connect.Client[lookRequest, lookReply]
	fetch     *connect.Client[fetchRequest, wire.Chunk]
	drain     *connect.Client[drainRequest, wire.Empty]
	tunnel    *connect.Client[wire.Chunk, wire.Chunk]
	identity  Identity
	faces     http.Handler                    // of the node's agent, for control; nil: it is not asked
	suspects  func(serverID string)           // is told of servers that do not answer others; may be nil
	tokens    atomic.Pointer[exchange.Tokens] // in place of the identity's, if they are set
}

// Identity is how the node proves itself.
type Identity struct {
	NodeID    string
	Secret    string
	JoinToken string

	introduction string // shown where the node joins, and else left out: it is long
}

// NewControl returns a client for control at base, e.g. "http://10.0.0.1:4647". The http client must speak HTTP/2
// (NewHTTPClient makes one).
func NewControl(hc *http.Client, base string, identity Identity) *Control {
	opts := wire.ClientOptions
	return &Control{
		register:  connect.NewClient[registerRequest, exchange.Registration](hc, base+procRegister, opts),
		heartbeat: connect.NewClient[nodeRequest, exchange.Registration](hc, base+procHeartbeat, opts),
		pull:      connect.NewClient[nodeRequest, pullReply](hc, base+procPull, opts),
		push:      connect.NewClient[nodeRequest, wire.Empty](hc, base+procPush, opts),
		sign:      connect.NewClient[signRequest, signReply](hc, base+procSign, opts),
		look:      connect.NewClient[lookRequest, lookReply](hc, base+procLook, opts),
		drain:     connect.NewClient[drainRequest, wire.Empty](hc, base+procDrain, opts),
		fetch:     connect.NewClient[fetchRequest, wire.Chunk](hc, base+procFetch, opts),
		tunnel:    connect.NewClient[wire.Chunk, wire.Chunk](hc, base+procTunnel, opts),
		identity:  identity,
	}
}

// Register announces the node.
func (c *Control) Register(ctx context.Context, node *drover.Node) (exchange.Registration, error) {
	return call(ctx, c.register, c.joins(), &registerRequest{Node: node})
}

// Heartbeat says the node is alive.
func (c *Control) Heartbeat(ctx context.Context, nodeID string) (exchange.Registration, error) {
	return call(ctx, c.heartbeat, c.who(), &nodeRequest{NodeID: nodeID})
}

// Pull waits for changes of what control wants.
func (c *Control) Pull(ctx context.Context, nodeID string, seen exchange.Seen, maxWait time.Duration) (exchange.Assignment, error) {
	r := nodeRequest{
		NodeID: nodeID, Since: seen.Index, State: seen.State, Age: seen.Age, MaxWait: maxWait, Apart: true, Answer: seen.Answer,
	}
	reply, err := call(ctx, c.pull, c.who(), &r)
	if err != nil {
		return exchange.Assignment{}, err
	}
	return reply.assignment()
}

// Push reports what the node observes.
func (c *Control) Push(ctx context.Context, nodeID string, updates []exchange.AllocUpdate) error {
	_, err := call(ctx, c.push, c.who(), &nodeRequest{NodeID: nodeID, Updates: updates})
	return err
}

// SignIdentities asks for tokens of what runs on the node. Errors: NotImplemented from an older server.
func (c *Control) SignIdentities(
	ctx context.Context, nodeID string, wanted []exchange.IdentityRequest,
) ([]exchange.SignedIdentity, error) {
	reply, err := call(ctx, c.sign, c.who(), &signRequest{nodeID, wanted})
	return reply.Signed, err
}

// Look asks what templates of what runs on the node ask. Errors: NotImplemented from an older server.
func (c *Control) Look(ctx context.Context, nodeID string, asked []exchange.Lookup, maxWait time.Duration) ([]exchange.Found, error) {
	reply, err := call(ctx, c.look, c.who(), &lookRequest{nodeID, asked, maxWait})
	return reply.Found, err
}

// DrainSelf has the node drained, or says that it is back. Errors: NotImplemented from an older server.
func (c *Control) DrainSelf(ctx context.Context, nodeID string, spec *drover.DrainSpec) error {
	_, err := call(ctx, c.drain, c.who(), &drainRequest{nodeID, spec})
	return err
}

// SetTokens has later calls show other tokens.
func (c *Control) SetTokens(t exchange.Tokens) { c.tokens.Store(&t) }

// who is the identity with the newest join token.
func (c *Control) who() Identity {
	i := c.identity
	if t := c.tokens.Load(); t != nil {
		i.JoinToken = t.Join
	}
	return i
}

// joins is who with the introduction.
func (c *Control) joins() Identity {
	i := c.who()
	if t := c.tokens.Load(); t != nil {
		i.introduction = t.Introduction
	}
	return i
}

// set puts the identity into a request's headers.
func (i Identity) set(h http.Header) {
	h.Set(nodeHeader, i.NodeID)
	h.Set(secretHeader, i.Secret)
	h.Set(tokenHeader, i.JoinToken)
	if i.introduction != "" {
		h.Set(introHeader, i.introduction)
	}
}

// call makes a unary call in the name of an identity. Errors: as wire.Call.
func call[Req, Res any](ctx context.Context, client *connect.Client[Req, Res], identity Identity, msg *Req) (Res, error) {
	req := connect.NewRequest(msg)
	identity.set(req.Header())
	return wire.Call(ctx, client, req)
}
