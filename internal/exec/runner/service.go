package runner

import (
	"context"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/wake"
)

// Service hands out warm runners. Its methods wait until Run has read the state. It is the shell around a Core: each
// method tells the core what happened, under the lock, and does the I/O that follows outside of it.
type Service struct {
	cfg       Config
	deps      Deps
	journal   *journal
	synced    chan struct{} // closed when the state was read for the first time
	over      chan struct{} // closed when Run ends
	timerUp   wake.Signal   // the earliest deadline changed
	toWrite   wake.Signal   // there is something to record
	adopted   wake.Signal   // claimed runners came
	extending sync.Mutex    // held while an extension is written: of two, the later one is also the later line

	mu      sync.Mutex // guards what follows
	core    *Core
	waiting map[*Waiter]chan struct{} // claims in line; closed when they are served
	lives   map[string]*life          // by allocation: of runners that were taken into use
	watched map[string]chan struct{}  // by environment: closed at the next change of its pool
	settled wake.Broadcast            // withheld runners are to be looked at again
	seats   map[*seat]struct{}        // bounded claims that were not answered yet
	ended   bool                      // over is closed: nothing is handed out any more
}

// New returns a Service; it opens the journal and starts nothing. Errors: the journal cannot be read or written.
func New(cfg Config, deps Deps) (*Service, error) {
	j, err := openJournal(cfg.JournalPath, cfg.Lease)
	if err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	return &Service{
		cfg: cfg, deps: deps, journal: j, core: NewCore(cfg.MaxWaiting, cfg.Lease),
		synced: make(chan struct{}), over: make(chan struct{}), timerUp: wake.NewSignal(), toWrite: wake.NewSignal(), adopted: wake.NewSignal(),
		waiting: map[*Waiter]chan struct{}{}, lives: map[string]*life{}, watched: map[string]chan struct{}{}, seats: map[*seat]struct{}{},
	}, nil
}

// Run follows the state, records claims and ends idle runners, until ctx ends. The state must be up to date when it is
// called: what the journal says is compared with it. When it has returned nothing is handed out any more, and whoever waits
// for a runner was told so.
func (s *Service) Run(ctx context.Context) error {
	if err := s.load(); err != nil {
		return err
	}
	var loops sync.WaitGroup
	loops.Go(func() { s.record(ctx) })  // ends with ctx
	loops.Go(func() { s.endIdle(ctx) }) // ends with ctx
	s.follow(ctx)
	s.end()
	loops.Wait()
	if s.cfg.Lease != 0 {
		s.recordRest(ctx)
	}
	return s.journal.close()
}

// end lets nothing be handed out any more. Claims whose lines are being written find that when they are to be answered.
func (s *Service) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	close(s.over)
}

// errOver is the error of whoever asks a service that has ended. Another server answers, if there are several.
func errOver() error { return drover.Errorf(drover.NotLeader, "No cluster leader") }

// load tells the core what an earlier process handed out and did not record.
func (s *Service) load() error {
	lines, err := s.journal.read()
	if err != nil {
		return err
	}
	snap := s.deps.Snapshot()
	var settled []string
	s.tell(func(c *Core, now time.Time) { settled = c.Load(now, snap, lines) })
	return s.journal.ended(settled)
}

// awaitSync waits until the state was read once, since before that every environment would look unknown. Errors:
// Unavailable when ctx ends first, NotLeader when the service has ended.
func (s *Service) awaitSync(ctx context.Context) error {
	select {
	case <-s.over:
		return errOver()
	default:
	}
	select {
	case <-s.synced:
		return nil
	default:
	}
	select {
	case <-s.over:
		return errOver()
	case <-s.synced:
		return nil
	case <-ctx.Done():
		return drover.Errorf(drover.Unavailable, "the execution service is starting")
	}
}

// tell tells the core what happened, or asks it something, and wakes whoever must act on that. The event must not block.
func (s *Service) tell(event func(c *Core, now time.Time)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	event(s.core, s.deps.Clock.Now())
	s.performLocked(s.core.Effects())
}

// performLocked acts on what the core wants done after an event. It runs under the lock, so it only closes channels
// and sends signals; whoever they wake does the I/O. A waiter or watcher without an entry has left.
func (s *Service) performLocked(e Effects) {
	for _, w := range e.Served {
		if served := s.waiting[w]; served != nil {
			close(served)
			delete(s.waiting, w)
		}
	}
	for _, ended := range e.Ended {
		if l := s.lives[ended.AllocID]; l != nil {
			l.reason = ended.Reason
			l.end()
			delete(s.lives, ended.AllocID)
		}
	}
	for _, id := range e.Changed {
		if changed := s.watched[id]; changed != nil {
			close(changed)
			delete(s.watched, id)
		}
	}
	if e.Settled {
		s.settled.Send()
	}
	if e.Record {
		s.toWrite.Send()
	}
	if e.Adopted {
		s.adopted.Send()
	}
	if e.Rearm {
		s.timerUp.Send()
	}
}

// look has the core read an environment of which no event arrived yet.
func (s *Service) look(c *Core, now time.Time, environmentID string) {
	if !c.Knows(environmentID) {
		c.ReadEnvironment(now, s.deps.Snapshot(), environmentID)
	}
}
