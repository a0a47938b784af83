package executor

import (
	"context"
	"log/slog"
	"maps"
	"runtime"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/exec/ledger"
	"github.com/drover-project/drover/internal/exec/runner"
	"github.com/drover-project/drover/internal/exec/turns"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/optional"
	"github.com/drover-project/drover/internal/stack"
	"github.com/drover-project/drover/internal/wake"
)

// taskName is the one task of a runner's job.
const taskName = environment.TaskName

// Runners claims runners and takes claimed ones into use; exec/runner has it. Errors: NotFound, Gone, Unavailable.
type Runners interface {
	Use(ctx context.Context, runnerID string) (*runner.Use, error) // waits some seconds for a node that is away
	UseNow(ctx context.Context, runnerID string) (*runner.Use, error)
	Claim(ctx context.Context, r execution.ClaimRequest) (execution.Runner, error)
	Release(ctx context.Context, runnerID string) error
}

// Keeping says which claimed runners this server keeps; exec/runner has it. Errors: Unavailable.
type Keeping interface {
	Kept(ctx context.Context) (runnerIDs []string, err error)    // claimed ones that no other server keeps
	Adopted(ctx context.Context) (runnerIDs []string, err error) // of them, those that were handed out elsewhere, since the last call
	Adopting(ctx context.Context) (bool, error)                  // whether the next Adopted has some, as the state says now
	More() <-chan struct{}                                       // receives when Adopted has some; it has one reader
	Keeper(allocID string) (mine, nobody bool)                   // who keeps it now; another server if neither
	// Reach is the node of a runner, whoever keeps that. Errors: Gone: the runner ended; Unavailable.
	Reach(allocID string) (exchange.Workloads, error)
	// Keeps reports whether what became of an allocation that this server kept under the lease is its to tell.
	Keeps(allocID string, lease uint64) bool
}

// Config of an Executor. Zero fields have the defaults said.
type Config struct {
	Window       int64         // bytes kept of each stream for readers; default 1 MiB
	Retain       time.Duration // how long ended executions are kept; default 15 minutes
	RetainCount  int           // how many of them, for each environment; default 1,000
	RetainBytes  int64         // how much of their output together; default 64 MiB
	AttachGrace  time.Duration // in which somebody must attach to one that may not run detached; default 30 s
	PreparedTime time.Duration // how long a prepared one waits to be started; default 10 minutes
	LedgerPath   string        // file of what was started and how it ended; "" keeps nothing over restarts
	Lease        uint64        // of the runners, as in runner.Config
}

// withDefaults returns the configuration with every zero field set, but for LedgerPath, whose zero has a meaning.
func (c Config) withDefaults() Config {
	optional.Default(&c.Window, 1<<20)
	optional.Default(&c.Retain, 15*time.Minute)
	optional.Default(&c.RetainCount, 1_000)
	optional.Default(&c.RetainBytes, 64<<20)
	optional.Default(&c.AttachGrace, 30*time.Second)
	optional.Default(&c.PreparedTime, 10*time.Minute)
	return c
}

// Deps of an Executor.
type Deps struct {
	Runners  Runners
	Keeping  Keeping
	Notifier Notifier // of webhooks; nil: there are none
	Teller   Teller   // of events; nil: they are not told
	Slots    Slots    // of quotas; nil: nothing is bounded
	// Identities signs tokens of executions; nil: they can have none.
	Identities Identities
	// Started, if set, is told of commands that were started: their environment's key, and how long the node took.
	Started func(environment string, took time.Duration)
	// Wrote, if set, is told when the first output of a command is here: its environment's key, and how long it took since it was asked for.
	Wrote   func(environment string, took time.Duration)
	Records Records // what the servers of a cluster keep together; nil: this server is alone, and has its ledger
	Clock   clock.Clock
	IDs     id.Source // used by several goroutines
	Log     *slog.Logger
}

// Executor starts executions and keeps them.
type Executor struct {
	cfg      Config
	deps     Deps
	pumps    sync.WaitGroup
	feed     feed
	ledger   *ledger.Ledger
	telling  turns.Turns
	base     context.Context // of what is done for executions beside requests; never ends by itself
	stopping context.Context // ends when Run does
	stop     context.CancelFunc

	mu            sync.Mutex // guards what follows
	closed        bool
	byID          map[string]*Execution
	recovered     chan struct{}   // closed when executions from before, or of another server, were looked for
	found         wake.Broadcast  // one of them was found, or a runner was looked through
	unseen        map[string]bool // runners that are to be looked through; nil until it is known which
	own           map[string]bool // begun by this process: true while it is starting, false after, while executions are looked for
	prepared      map[string]prepared
	swept         time.Time    // when prepared was walked over last
	preparedBytes int          // of their commands and variables
	ended         []*Execution // oldest first
	perEnv        map[string]int
	bytes         int64 // kept of ended
	shells        map[string]string
}

// New returns an Executor; it opens the ledger and starts nothing. Errors: the ledger cannot be read or written.
func New(cfg Config, deps Deps) (*Executor, error) {
	kept, err := ledger.Open(cfg.LedgerPath)
	if err != nil {
		return nil, err
	}
	base := context.Background() //nolint:forbidigo // executions outlast requests, and must keep nothing of them
	stopping, stop := context.WithCancel(base)
	return &Executor{
		cfg: cfg.withDefaults(), deps: deps,
		feed: newFeed(deps.Records != nil), ledger: kept, telling: turns.New(),
		base: base, stopping: stopping, stop: stop,
		recovered: make(chan struct{}),
		byID:      map[string]*Execution{}, own: map[string]bool{}, prepared: map[string]prepared{}, perEnv: map[string]int{},
		shells: map[string]string{},
	}, nil
}

// Run takes up executions from before this process, waits until ctx ends, then lets go of all of them; those that may
// run detached go on in their runners.
func (s *Executor) Run(ctx context.Context) error {
	var telling sync.WaitGroup
	telling.Go(func() { s.tell(ctx) }) // ends with ctx
	defer func() {
		telling.Wait()
		s.flush(ctx)
	}()
	running, err := s.remember(ctx)
	if err != nil {
		return err
	}
	_ = s.listed(s.deps.Keeping.Adopted(ctx)) // which are among those that are kept
	s.recover(ctx, s.listed(s.deps.Keeping.Kept(ctx)), running)
	s.lose(ctx, running)
	s.takeUp(ctx)
	s.stop()
	s.mu.Lock()
	s.closed = true
	for _, x := range s.byID {
		x.stop()
	}
	s.mu.Unlock()
	s.pumps.Wait()
	return s.ledger.Close()
}

// Start starts the command in the runner. What the environment and the claim bind (variables, user, directory) is
// filled in where the spec says nothing. A command that cannot be started is no error: its receipt says so. Errors:
// Invalid, NotFound, Gone, Unavailable, Exhausted.
func (s *Executor) Start(ctx context.Context, runnerID string, spec execution.Spec) (*Execution, error) {
	return s.startFor(ctx, runnerID, spec, terms{})
}

// terms are what a request says of an execution beside its spec.
type terms struct {
	webhook  string    // told of the end
	request  string    // a digest, of a request with an idempotency key
	recorded bool      // its start is in the Records
	begun    time.Time // when it was asked for; zero: by an earlier process
}

// startFor is Start for a request.
func (s *Executor) startFor(ctx context.Context, runnerID string, spec execution.Spec, of terms) (*Execution, error) {
	if err := Validate(spec); err != nil {
		return nil, err
	}
	if s.feed.full() {
		return nil, drover.Errorf(drover.Unavailable, "how %d executions ended cannot be recorded now: is there a leader?", maxUntold)
	}
	use, err := s.deps.Runners.Use(ctx, runnerID)
	if err != nil {
		return nil, err
	}
	if r := use.Runner(); of.webhook != "" && s.telling.Crowded(r.Key()) {
		use.Done()
		return nil, drover.Errorf(drover.Exhausted, "%d webhooks of environment %q wait to be told: do their receivers answer?",
			turns.MaxWaiting, r.Key())
	}
	x, err := s.start(ctx, use, spec, of)
	if err != nil {
		use.Done()
		return nil, err
	}
	return x, nil
}

// start starts the command and takes the execution up; on an error the use stays the caller's. The order matters:
// the id is noted before the node knows it, so that recovery does not take it for an earlier process's. The ledger
// line is written before anybody hears of the execution. When the runner went away meanwhile its reason is the error,
// not that of the broken connection.
func (s *Executor) start(ctx context.Context, use *runner.Use, spec execution.Spec, of terms) (*Execution, error) {
	r := use.Runner()
	spec, err := bind(spec, use.Environment(), r)
	if err != nil {
		return nil, err
	}
	if spec.ID == "" {
		spec.ID = s.deps.IDs.New()
	}
	if len(spec.Values) != len(spec.Secrets) {
		return nil, drover.Errorf(drover.NotImplemented, "secrets: this server reads no variables for executions")
	}
	if err := s.identify(ctx, use, &spec); err != nil {
		return nil, err
	}
	s.beginOwn(spec.ID)
	defer s.endOwn(spec.ID)
	giveBack, err := s.takeSlot(ctx, r.AllocID, spec.ID)
	if err != nil {
		return nil, err
	}
	of.begun = s.deps.Clock.Now()
	session, err := s.open(ctx, use, spec)
	spec.Values = nil // from here on it is kept, and told of
	if err != nil {
		giveBack()
		select {
		case <-use.Gone():
			return nil, use.GoneReason()
		default:
			return nil, err
		}
	}
	if s.deps.Started != nil {
		s.deps.Started(r.Key(), s.deps.Clock.Now().Sub(of.begun))
	}
	if err := s.promise(ctx, r, spec, &of); err != nil {
		_ = session.Signal(ctx, "KILL") // nobody has heard of it
		_ = session.Close()
		giveBack()
		return nil, err
	}
	return s.adopt(use, spec, session, of)
}

// startWithin is how long a node may take to start a command: the one who asked waits, and cannot be heard meanwhile.
const startWithin = time.Minute

// open asks the node to start the command. A node that takes too long is Unavailable; if the caller's own context
// ended, its error stays.
func (s *Executor) open(ctx context.Context, use *runner.Use, spec execution.Spec) (execution.Session, error) {
	limit, cancel := s.deps.Clock.WithTimeout(ctx, startWithin)
	defer cancel()
	spec.Keep = s.cfg.Retain
	session, err := use.Workloads().StartExecution(limit, use.Runner().AllocID, taskName, spec)
	if err != nil && limit.Err() != nil && ctx.Err() == nil {
		return nil, drover.Errorf(drover.Unavailable, "the runner's node did not start the command within %v: %w", startWithin, err)
	}
	return session, err
}

// beginOwn keeps recovering from taking up an execution that this process starts.
func (s *Executor) beginOwn(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own[id] = true
}

// endOwn ends that, or when what is looked for now is found: by then this process may have forgotten the execution.
func (s *Executor) endOwn(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.recovered:
		delete(s.own, id)
	default:
		s.own[id] = false
	}
}

// known reports whether this process has the execution, had it, or is about to have it.
func (s *Executor) known(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, own := s.own[id]
	return own || s.byID[id] != nil
}

// endRecovery releases the requests that wait for an execution that may still be found. It runs once for each look, however
// that ended.
func (s *Executor) endRecovery() {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.own, func(_ string, starting bool) bool { return !starting })
	close(s.recovered)
}

// beginRecovery lets requests wait again for executions that may be found.
func (s *Executor) beginRecovery() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recovered, s.unseen = make(chan struct{}), nil
	s.found.Send() // Finds waits for this, too
}

// looking returns a channel that is closed when no executions are looked for.
func (s *Executor) looking() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recovered
}

// adopt makes an Execution of a session and starts its pump. It is kept after its end, and with it would be the request that its context
// came from, down to the connection's buffers.
func (s *Executor) adopt(use *runner.Use, spec execution.Spec, session execution.Session, of terms) (*Execution, error) {
	pumpCtx, stop := context.WithCancel(s.base)
	x := &Execution{
		id: spec.ID, runner: use.Runner(), spec: spec, session: session, use: use, clock: s.deps.Clock, terms: of,
		window: s.cfg.Window, grace: s.cfg.AttachGrace, stop: stop, done: make(chan struct{}),
		readers: map[*Reader]struct{}{}, wake: make(chan struct{}), base: s.base, stdin: newInput(),
		wrote: s.deps.Wrote,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		stop()
		execution.LetGo(session)
		return nil, drover.Errorf(drover.Unavailable, "shutting down")
	}
	s.byID[x.id] = x
	if !of.recorded {
		s.feed.publish(Event{Type: EventStarted, Execution: x.Info()})
	}
	if spec.Detach >= 0 {
		x.mu.Lock()
		x.killSoonLocked(max(spec.Detach, x.grace))
		x.mu.Unlock()
	}
	s.pumps.Go(func() { // ends with the execution, its runner, or Run
		stack.Grow8K()
		defer stop()
		defer use.WhenGone(func() {
			stop()
			x.mustEnd()
		})()
		receipt, known := x.pump(pumpCtx)
		s.conclude(pumpCtx, x, receipt, known || s.stopping.Err() == nil)
	})
	return x, nil
}

// conclude ends an execution. It is written down first: what somebody has heard of must still be known when this process is
// killed. If it is not sure that it ended, this service only lets go of it.
func (s *Executor) conclude(ctx context.Context, x *Execution, receipt execution.Receipt, sure bool) {
	if !sure {
		x.leave()
		return
	}
	at := s.deps.Clock.Now()
	s.writeDown(x.record(receipt, at))
	x.end(receipt, at)
	if s.deps.Records == nil { // else the runner keeps it until it is recorded
		runtime.Gosched() // those who wait come first
		x.clearAway()
	}
	s.tellEnd(ctx, x)
}

// writeDown records an end; an error is only logged, as the execution has ended anyway. After a restart it would
// count as lost.
func (s *Executor) writeDown(r ledger.Record) {
	if err := s.ledger.Write(r); err != nil {
		s.deps.Log.Warn("writing an execution's end down", "execution", r.Execution.ID, "error", err)
	}
}

// tellEnd tells of an ended execution, and keeps it for late readers.
func (s *Executor) tellEnd(ctx context.Context, x *Execution) {
	ended := Event{Type: EventEnded, Execution: x.Info(), Webhook: x.webhook, Request: x.request}
	if s.deps.Records != nil {
		ended.done = x.clearAway
	}
	s.feed.publish(ended)
	s.retire(x)
	s.notify(ctx, x)
}

// Execution returns a running or lately ended one, wherever it ran: those that ended at another server without their output, see fetch.
// Errors: NotFound; Unavailable: it may be in a runner whose node is away.
func (s *Executor) Execution(ctx context.Context, executionID string) (*Execution, error) {
	if x := s.find(executionID); x != nil {
		return x, nil
	}
	if x := s.endedElsewhere(executionID); x != nil {
		return x, nil
	}
	x, err := s.awaitRecovered(ctx, executionID)
	if x == nil && err == nil {
		err = execution.ErrUnknown(executionID)
	}
	return x, err
}

// Has reports whether the execution runs here, or is kept.
func (s *Executor) Has(executionID string) bool { return s.find(executionID) != nil }

// Finds is Has, but while executions are looked for it waits for this one. Errors: Unavailable: it may still be found.
func (s *Executor) Finds(ctx context.Context, executionID string) (bool, error) {
	if s.find(executionID) != nil {
		return true, nil
	}
	for ctx.Err() == nil {
		found := s.found.C()
		adopting, err := s.deps.Keeping.Adopting(ctx) // asked first: while there are some, or they are looked through, it is not over
		if err != nil {
			return false, drover.Errorf(drover.Unavailable, "execution %s is looked for: %w", executionID, err)
		}
		if !adopting {
			break
		}
		select {
		case <-found:
		case <-ctx.Done():
		}
	}
	x, err := s.awaitRecovered(ctx, executionID)
	return x != nil, err
}

// find returns a running or kept execution; nil without one.
func (s *Executor) find(executionID string) *Execution {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireLocked()
	return s.byID[executionID]
}
