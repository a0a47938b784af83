package nodes

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"maps"
	"net"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/link"
	"github.com/drover-project/drover/internal/peercall"
	"github.com/drover-project/drover/internal/server/servers"
)

// Procedures that the leader answers.
const (
	procIndex      = "Nodes.Index"
	procRegister   = "Nodes.Register"
	procHeartbeats = "Nodes.Heartbeats"
	procPushes     = "Nodes.Pushes"
)

const (
	// hold is how long a call waits for a leader. It is shorter than that of requests of people: a node has other servers.
	hold = 5 * time.Second
	// within is how long the leader has to answer; reports wait for the log.
	within = 8 * time.Second
	// slowBeat is how long heartbeats wait for those that were sent before, some of which may wait for the log.
	slowBeat = 500 * time.Millisecond
	// askAgain is how long who was not answered waits for news of another leader.
	askAgain = 100 * time.Millisecond
	// believed is for how long a server goes on to believe a node that the leader's state confirmed. Only the secret of a node that
	// was removed and whose id another node has meanwhile could be shown in that time without right.
	believed = 10 * time.Second
	// touch is how long ago a server may have heard of the leader that tells nodes what to run.
	touch = 4 * time.Second
)

// Servers are this server and the others; *servers.Servers is one.
type Servers interface {
	Clustered() bool
	Self() servers.Server
	Leader() (servers.Server, bool)
	Leads() bool // this server, as far as it knows
	List() []servers.Server
	Changed() <-chan struct{}
	Client() *peercall.Client
	Dial(ctx context.Context, address string) (net.Conn, error)
	Mux() *peercall.Mux
}

// Gate decides about nodes on this server's state; *gate.Gate is one.
type Gate interface {
	Admit(tokens exchange.Tokens, node *drover.Node) error
	Authenticate(nodeID, secret string) error
	Revoked(nodeID string) error // Errors: Unauthorized for one that was revoked
}

// Log is this server's log.
type Log interface {
	// Ready returns once this server, which leads, has all that was acknowledged before it did. Errors: NotLeader, Unavailable.
	Ready(ctx context.Context) error
	LastContact() time.Duration
}

// Deps are what a Front works with.
type Deps struct {
	Servers Servers
	Control exchange.Controller // that of this server, which decides only while it leads
	Issuer  Issuer              // nil: this server makes no tokens
	Looker  Looker              // nil: this server answers no templates
	// Drain carries out what a node asks of itself; nil: this server does not.
	Drain func(ctx context.Context, r drover.DrainRequest) error
	// Workloads finds a node's; nil: this server hands on no data.
	Workloads func(nodeID string) (exchange.Workloads, error)
	Gate      Gate
	Holds     func(nodeID string) bool // whether this server reaches the node
	Suspect   func(serverID string)    // tells the nodes that this server reaches that another server does not answer it
	Log       Log
	Store     *store.Store
	Clock     clock.Clock
	Logger    *slog.Logger
}

// Front is control as nodes see it at this server: an exchange.Controller and a link.Authenticator.
type Front struct {
	deps    Deps
	current *gather[struct{}, struct{}]
	beats   *gather[string, exchange.Registration]
	pushes  *gather[push, struct{}]

	mu      sync.Mutex             // guards what follows
	proven  map[string]proof       // by node
	sweep   int                    // when there are so many the old ones are removed
	through map[string]*link.Piped // nodes that others reach
}

// push is a node's report on its way to the leader.
type push struct {
	NodeID  string
	Updates []exchange.AllocUpdate
}

// proof is that a node showed the right secret.
type proof struct {
	secret [sha256.Size]byte
	until  time.Time
}

// New returns the front of this server. In a cluster its mux answers the others' from then on.
func New(deps Deps) *Front {
	f := &Front{deps: deps, proven: map[string]proof{}, through: map[string]*link.Piped{}}
	f.current = &gather[struct{}, struct{}]{clock: deps.Clock, send: f.catchUp, most: 1}
	f.beats = &gather[string, exchange.Registration]{clock: deps.Clock, send: f.sendBeats, most: 1, slow: slowBeat}
	f.pushes = &gather[push, struct{}]{clock: deps.Clock, send: f.sendPushes, most: 8}
	if deps.Servers.Clustered() {
		f.answer(deps.Servers.Mux())
	}
	return f
}

// Touch returns an error while this server has not heard of the leader for so long that others may know more.
func (f *Front) Touch() error {
	if ago := f.deps.Log.LastContact(); ago < 0 || ago > touch {
		return drover.Errorf(drover.Unavailable, "this server is cut off from the leader")
	}
	return nil
}

// Pull implements exchange.Controller.
func (f *Front) Pull(ctx context.Context, nodeID string, seen exchange.Seen, maxWait time.Duration) (exchange.Assignment, error) {
	return f.deps.Control.Pull(ctx, nodeID, seen, maxWait)
}

// Register implements exchange.Controller.
func (f *Front) Register(ctx context.Context, n *drover.Node) (exchange.Registration, error) {
	here := func(ctx context.Context) (exchange.Registration, error) { return f.deps.Control.Register(ctx, n) }
	if !f.deps.Servers.Clustered() {
		return here(ctx)
	}
	return atLeader(ctx, f, here, func(ctx context.Context, address string) (exchange.Registration, error) {
		return peercall.Call[exchange.Registration](ctx, f.deps.Servers.Client(), address, procRegister, n)
	})
}

// Heartbeat implements exchange.Controller.
func (f *Front) Heartbeat(ctx context.Context, nodeID string) (exchange.Registration, error) {
	if f.direct() {
		reg, err := f.deps.Control.Heartbeat(ctx, nodeID)
		if !f.elsewhere(err) {
			return reg, err
		}
	}
	return f.beats.ask(ctx, nodeID)
}

// Push implements exchange.Controller.
func (f *Front) Push(ctx context.Context, nodeID string, updates []exchange.AllocUpdate) error {
	if f.direct() {
		if err := f.push(ctx, nodeID, updates); !f.elsewhere(err) {
			return err
		}
	}
	_, err := f.pushes.ask(ctx, push{nodeID, updates})
	return err
}

// push stores what a node reports, if this server leads and knows all that was acknowledged.
func (f *Front) push(ctx context.Context, nodeID string, updates []exchange.AllocUpdate) error {
	if f.deps.Servers.Clustered() {
		if err := f.deps.Log.Ready(ctx); err != nil {
			return err
		}
	}
	return f.deps.Control.Push(ctx, nodeID, updates)
}

// elsewhere reports whether another server can do what this one cannot.
func (f *Front) elsewhere(err error) bool {
	return f.deps.Servers.Clustered() && drover.CodeOf(err) == drover.NotLeader
}

// direct reports whether this server decides, as far as it knows.
func (f *Front) direct() bool {
	if !f.deps.Servers.Clustered() {
		return true
	}
	return f.deps.Servers.Leads()
}

// Authenticate implements link.Authenticator.
func (f *Front) Authenticate(ctx context.Context, nodeID, secret string) error {
	if !f.deps.Servers.Clustered() {
		return f.deps.Gate.Authenticate(nodeID, secret)
	}
	if err := f.deps.Gate.Revoked(nodeID); err != nil { // whatever is believed
		return err
	}
	sum, now := sha256.Sum256([]byte(secret)), f.deps.Clock.Now()
	f.mu.Lock()
	known := f.proven[nodeID]
	f.mu.Unlock()
	if known.secret == sum && now.Before(known.until) {
		return nil
	}
	if err := f.Current(ctx); err != nil {
		return err
	}
	err := f.deps.Gate.Authenticate(nodeID, secret)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		delete(f.proven, nodeID)
		return err
	}
	if len(f.proven) >= f.sweep {
		maps.DeleteFunc(f.proven, func(_ string, p proof) bool { return !now.Before(p.until) })
		f.sweep = 2*len(f.proven) + 1000
	}
	f.proven[nodeID] = proof{sum, now.Add(believed)}
	return nil
}

// Admit implements link.Authenticator.
func (f *Front) Admit(ctx context.Context, tokens exchange.Tokens, node *drover.Node) error {
	if err := f.Current(ctx); err != nil {
		return err
	}
	return f.deps.Gate.Admit(tokens, node)
}

// Current returns once this server's state has all that the leader's had when this was called. Errors: Unavailable, Canceled.
func (f *Front) Current(ctx context.Context) error {
	if !f.deps.Servers.Clustered() {
		return nil
	}
	_, err := f.current.ask(ctx, struct{}{})
	return err
}

// catchUp waits until this server's state has all that the leader's has now, once for all who ask. Thousands that each waited
// for the state would be woken up by every entry of the log.
func (f *Front) catchUp(ctx context.Context, list []struct{}) ([]result[struct{}], error) {
	index, err := f.askIndex(ctx)
	if err != nil {
		return nil, err
	}
	wait, cancel := f.deps.Clock.WithTimeout(ctx, hold)
	defer cancel()
	for {
		changed := f.deps.Store.WatchAny()
		if f.deps.Store.Snapshot().Index() >= index {
			return make([]result[struct{}], len(list)), nil
		}
		select {
		case <-changed:
		case <-wait.Done():
			return nil, drover.Errorf(drover.Unavailable, "this server's state is older than the leader's")
		}
	}
}
