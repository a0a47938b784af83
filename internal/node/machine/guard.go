package machine

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
)

// Attributes of nodes that a fleet looks at.
const (
	// AttributeBroken is there while the run probe fails, and says why.
	AttributeBroken = "unique.fleet.broken"
	// AttributeInterrupted is when the cloud takes the machine back (RFC 3339), once it said so.
	AttributeInterrupted = "unique.fleet.interrupted"
)

// Config is what a Guard does. Its zero value does nothing.
type Config struct {
	// BootProbe must succeed before the node registers; it is tried until then. "" = at once.
	BootProbe string
	// RunProbe must keep succeeding: when it fails three times in a row the node takes no new work until it succeeds.
	RunProbe string
	// ProbeEvery is the time between run probes; default 10 s. Boot probes are tried every 2 s.
	ProbeEvery time.Duration
	// ProbeTimeout ends a probe that hangs; default 30 s.
	ProbeTimeout time.Duration
	// Notices is the address of the cloud's metadata service (EC2's, version 2), which tells when a spot machine is
	// taken back. "" = there is none.
	Notices string
	// Idle is how long a machine without work lives when no server answers. 0 = forever.
	Idle time.Duration
	// Busy is the same for a machine with work. 0 = forever.
	Busy time.Duration
	// PowerOff is the command that ends the machine. Empty: everything that runs is stopped, and Run ends.
	PowerOff []string
}

// Deps is what a Guard needs of others.
type Deps struct {
	Controller exchange.Controller
	Clock      clock.Clock
	Log        *slog.Logger
	Work       func() int                                               // how many allocations run
	Command    func(ctx context.Context, argv []string) ([]byte, error) // runs a program; nil = for real
	Probed     func(probe string, took time.Duration, ok bool)          // told of each try of the "boot" and the "run" probe; nil = nobody is
}

// Guard is a exchange.Controller that knows when it last heard of control.
type Guard struct {
	cfg    Config
	deps   Deps
	booted chan struct{} // closed when the boot probe succeeded
	dead   chan struct{} // closed when the machine is given up

	mu    sync.Mutex
	heard time.Time // when control last answered; guarded by mu
	news  marks     // what the node is marked with; guarded by mu
	told  marks     // what of it was registered; guarded by mu
}

// marks are what control shall know of the machine.
type marks struct {
	broken      string // what the run probe says
	interrupted string // when the cloud takes the machine back
}

// New returns a guard that does nothing before Run, but for holding back registrations.
func New(cfg Config, deps Deps) *Guard {
	if cfg.ProbeEvery == 0 {
		cfg.ProbeEvery = 10 * time.Second
	}
	if cfg.ProbeTimeout == 0 {
		cfg.ProbeTimeout = 30 * time.Second
	}
	if deps.Command == nil {
		deps.Command = run
	}
	return &Guard{cfg: cfg, deps: deps, booted: make(chan struct{}), dead: make(chan struct{}), heard: deps.Clock.Now()}
}

// Run probes and watches until ctx ends. Errors: ErrDead.
func (g *Guard) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var loops sync.WaitGroup
	defer loops.Wait()
	loops.Go(func() { // ends with ctx
		if g.boot(ctx) && g.cfg.RunProbe != "" {
			g.probe(ctx)
		}
	})
	if g.cfg.Notices != "" {
		loops.Go(func() { g.notice(ctx) }) // ends with ctx
	}
	err := g.watch(ctx)
	cancel()
	return err
}

// Register implements exchange.Controller: it waits for the boot probe, and tells of a run probe that fails.
func (g *Guard) Register(ctx context.Context, n *drover.Node) (exchange.Registration, error) {
	select {
	case <-g.booted:
	case <-ctx.Done():
		return exchange.Registration{}, drover.Errorf(drover.Canceled, "waiting for the boot probe: %w", context.Cause(ctx))
	}
	g.mu.Lock()
	news := g.news
	g.mu.Unlock()
	answer, err := g.deps.Controller.Register(ctx, news.on(n))
	if err == nil {
		g.mu.Lock()
		g.told = news
		g.mu.Unlock()
	}
	return answer, g.hear(err)
}

// Heartbeat implements exchange.Controller. When the machine has news the agent is asked to register again.
func (g *Guard) Heartbeat(ctx context.Context, nodeID string) (exchange.Registration, error) {
	g.mu.Lock()
	news := g.news != g.told
	g.mu.Unlock()
	if news {
		return exchange.Registration{}, drover.Errorf(drover.NotFound, "the machine has news: register again")
	}
	answer, err := g.deps.Controller.Heartbeat(ctx, nodeID)
	return answer, g.hear(err)
}

// Pull implements exchange.Controller. On a machine that is given up nothing is wanted.
func (g *Guard) Pull(ctx context.Context, nodeID string, seen exchange.Seen, maxWait time.Duration) (exchange.Assignment, error) {
	callCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	over := make(chan struct{})
	defer close(over)
	go func() { // ends with the call
		select {
		case <-g.dead:
			cancel()
		case <-over:
		}
	}()
	answer, err := g.deps.Controller.Pull(callCtx, nodeID, seen, maxWait)
	if g.isDead() {
		return exchange.Assignment{Index: seen.Index + 1, State: seen.State, Age: seen.Age}, nil
	}
	return answer, g.hear(err)
}

// Push implements exchange.Controller.
func (g *Guard) Push(ctx context.Context, nodeID string, updates []exchange.AllocUpdate) error {
	return g.hear(g.deps.Controller.Push(ctx, nodeID, updates))
}

// hear notes that control answered, if it did.
func (g *Guard) hear(err error) error {
	if err == nil {
		g.mu.Lock()
		g.heard = g.deps.Clock.Now()
		g.mu.Unlock()
	}
	return err
}

// isDead reports whether the machine is given up. That is never taken back.
func (g *Guard) isDead() bool {
	select {
	case <-g.dead:
		return true
	default:
		return false
	}
}

// on is the node as it is registered: with the marks, and without a healthy driver while the machine is broken, so that
// no work is placed on it.
func (m marks) on(n *drover.Node) *drover.Node {
	if m == (marks{}) {
		return n
	}
	out := *n
	out.Attributes = maps.Clone(n.Attributes)
	if out.Attributes == nil {
		out.Attributes = map[string]string{}
	}
	if m.interrupted != "" {
		out.Attributes[AttributeInterrupted] = m.interrupted
	}
	if m.broken == "" {
		return &out
	}
	out.Attributes[AttributeBroken] = m.broken
	out.Drivers = map[string]*drover.DriverInfo{}
	for name, info := range n.Drivers {
		sick := *info
		sick.Healthy, sick.HealthDescription = false, "the machine's run probe fails: "+m.broken
		out.Drivers[name] = &sick
		delete(out.Attributes, "driver."+name)
	}
	out.ComputedClass += "-broken"
	return &out
}

// ErrDead ends an agent on a machine that is given up.
var ErrDead = errors.New("no server answered for too long: the machine is given up")

// SignIdentities implements exchange.Identities, where the controller does.
func (g *Guard) SignIdentities(
	ctx context.Context, nodeID string, wanted []exchange.IdentityRequest,
) ([]exchange.SignedIdentity, error) {
	signs, ok := g.deps.Controller.(exchange.Identities)
	if !ok {
		return nil, drover.Errorf(drover.NotImplemented, "control makes no identities")
	}
	return signs.SignIdentities(ctx, nodeID, wanted)
}

// DrainSelf implements exchange.Drains, where the controller does.
func (g *Guard) DrainSelf(ctx context.Context, nodeID string, spec *drover.DrainSpec) error {
	drains, ok := g.deps.Controller.(exchange.Drains)
	if !ok {
		return drover.Errorf(drover.NotImplemented, "control does not drain nodes that leave")
	}
	return drains.DrainSelf(ctx, nodeID, spec)
}

// Look implements exchange.Lookups, where the controller does.
func (g *Guard) Look(
	ctx context.Context, nodeID string, asked []exchange.Lookup, maxWait time.Duration,
) ([]exchange.Found, error) {
	looks, ok := g.deps.Controller.(exchange.Lookups)
	if !ok {
		return nil, drover.Errorf(drover.NotImplemented, "control answers no templates")
	}
	return looks.Look(ctx, nodeID, asked, maxWait)
}

var _ exchange.Controller = (*Guard)(nil)
