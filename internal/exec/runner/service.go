package runner

import (
	"context"
	"sync"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/exec/pool"
)

// Service hands out warm runners. Its methods wait until Run has read the state.
type Service struct {
	cfg     Config
	deps    Deps
	journal *journal
	synced  chan struct{} // closed when the state was read for the first time
	timerUp chan struct{} // holds an element when the earliest deadline changed
	toWrite chan struct{} // holds an element when there is something to record

	mu        sync.Mutex // guards what follows
	envs      map[string]*env
	runners   map[string]*runner // by allocation
	tombs     tombs
	deadlines pool.Deadlines // of idle runners, by allocation
	claims    []AllocClaim   // to be recorded
	releases  []release      // to be recorded, after the claims
	uses      uint64         // of runners, so far: claims, releases, leases and their ends
	held      map[string]int // allocations that are about to be stopped, and how many times
	recorded  chan struct{}  // closed when claims were recorded; nil: nobody waits for that
}

// env is an environment with its pool.
type env struct {
	execution.Environment
	version uint64 // ModifyIndex of the job it was read from
	warm    pool.Stack
	claimed int
	waiters pool.Queue[*waiter]
	serving int           // waiters that were served, and whose claim is not in line to be recorded yet
	handing int           // handed out, and not in line to be recorded yet
	demand  int           // as recorded
	changed chan struct{} // closed at the next change of warm; nil: nobody looks
}

// runner is a warm or claimed one.
type runner struct {
	alloc  *drover.Allocation
	env    string
	of     execution.Environment // as it was made of
	claim  *drover.Claim         // nil while warm
	busy   int                   // leases held
	counts *env                  // in whose serving and handing it counts
	served bool                  // a waiter has it
	handed bool                  // it was handed out, and its claim is not in line yet
	life   context.Context       // ends with it; nil while warm
	end    context.CancelFunc    // of life
	reason error                 // why it ended
}

type waiter struct{ served chan *runner } // capacity 1

// manyTombs is how many ended runners are remembered, some 250 bytes each: what ends in five minutes at ten thousand
// cycles a minute. The state forgets them sooner.
const manyTombs = 50_000

type release struct{ allocID, reason string }

// New returns a Service; it opens the journal and starts nothing. Errors: the journal cannot be read or written.
func New(cfg Config, deps Deps) (*Service, error) {
	j, err := openJournal(cfg.JournalPath)
	if err != nil {
		return nil, err
	}
	return &Service{
		cfg: cfg.withDefaults(), deps: deps, journal: j,
		synced: make(chan struct{}), timerUp: make(chan struct{}, 1), toWrite: make(chan struct{}, 1),
		envs: map[string]*env{}, runners: map[string]*runner{}, tombs: newTombs(manyTombs), held: map[string]int{},
	}, nil
}

// Run follows the state, records claims and ends idle runners, until ctx ends. The state must be up to date when it is
// called: what the journal says is compared with it.
func (s *Service) Run(ctx context.Context) error {
	if err := s.replay(); err != nil {
		return err
	}
	var loops sync.WaitGroup
	loops.Go(func() { s.record(ctx) })  // ends with ctx
	loops.Go(func() { s.endIdle(ctx) }) // ends with ctx
	s.follow(ctx)
	loops.Wait()
	return s.journal.close()
}

func (s *Service) awaitSync(ctx context.Context) error {
	select {
	case <-s.synced:
		return nil
	default:
	}
	select {
	case <-s.synced:
		return nil
	case <-ctx.Done():
		return drover.Errorf(drover.Unavailable, "the execution service is starting")
	}
}

// id is what claimers call the runner.
func (r *runner) id() string {
	if r.claim != nil {
		return r.claim.RunnerID
	}
	return RunnerID(r.env, r.alloc.ID)
}

// RunnerID makes a runner's id.
func RunnerID(environmentID, allocID string) string { return environmentID + "-" + allocID }

const uuidLength = 36

// allocOf returns the allocation in a runner's id.
func allocOf(runnerID string) (environmentID, allocID string, ok bool) {
	cut := len(runnerID) - uuidLength
	if cut < 2 || runnerID[cut-1] != '-' {
		return "", "", false
	}
	return runnerID[:cut-1], runnerID[cut:], true
}

func (r *runner) public() execution.Runner {
	out := execution.Runner{ID: r.id(), AllocID: r.alloc.ID, Environment: r.env, NodeID: r.alloc.NodeID, State: execution.RunnerWarm}
	if r.alloc.AllocatedResources != nil {
		for _, p := range r.alloc.AllocatedResources.Shared.Ports {
			out.Ports = append(out.Ports, environment.Address(r.of, r.alloc, p))
		}
	}
	if r.claim == nil {
		return out
	}
	out.State = execution.RunnerClaimed
	if r.busy > 0 {
		out.State = execution.RunnerBusy
	}
	if r.reason != nil {
		out.State = execution.RunnerDestroyed
	}
	out.ClaimedAt = unixNano(r.claim.ClaimedAt)
	out.IdleTimeout, out.Labels, out.Env, out.Limits = r.claim.IdleTimeout, r.claim.Labels, r.claim.Env, r.claim.Limits
	return out
}

// envLocked returns the environment, reading it from the state if the event of its creation did not arrive yet.
func (s *Service) envLocked(id string) *env {
	if e, ok := s.envs[id]; ok {
		return e
	}
	s.readEnvLocked(s.deps.Snapshot(), environment.JobID(id))
	return s.envs[id]
}

func noEnvironment(id string) error {
	return drover.Errorf(drover.NotFound, "environment %q not found", id)
}
