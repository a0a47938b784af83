package lessee_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/leases"
	"github.com/drover-project/drover/internal/exec/exectest"
	"github.com/drover-project/drover/internal/exec/executor"
	"github.com/drover-project/drover/internal/exec/runner"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/server/lessee"
	"github.com/drover-project/drover/internal/wake"
)

// region is a state with the servers of a region, and what the state machine does with leases in a few lines.
type region struct {
	*exectest.Control
	t *testing.T

	old atomic.Bool // the cluster writes no leases yet
	lag atomic.Bool // followers do not have what the leader has

	mu      sync.Mutex // guards what follows
	last    uint64
	lessees map[uint64]string
	allocs  []string
	changed wake.Broadcast
	leader  *server
	servers map[string]*server
}

func newRegion(t *testing.T, names ...string) *region {
	r := &region{Control: exectest.NewControl(), t: t, lessees: map[uint64]string{}, servers: map[string]*server{}}
	for _, name := range names {
		r.servers[name] = r.server(name)
	}
	return r
}

// add adds a warm runner that is leased to the server.
func (r *region) add(name string) *drover.Allocation {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.AddLeased("python", r.incarnationLocked(name))
	r.allocs = append(r.allocs, a.ID)
	return a
}

// incarnation is the server's; 0 if it has none.
func (r *region) incarnation(name string) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.incarnationLocked(name)
}

func (r *region) incarnationLocked(name string) uint64 {
	for incarnation, server := range r.lessees {
		if server == name {
			return incarnation
		}
	}
	return 0
}

// unclaimed are the warm runners that nobody was leased.
func (r *region) unclaimed() (ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range r.allocs {
		if a := r.Snapshot().Allocation(id); a.Lease == 0 && a.Claim == nil && !a.Terminal() {
			ids = append(ids, id)
		}
	}
	return ids
}

func (r *region) list() (all []*cluster.Lessee) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for incarnation, server := range r.lessees {
		all = append(all, &cluster.Lessee{Server: server, Incarnation: incarnation})
	}
	return all
}

// endLocked ends an incarnation.
func (r *region) endLocked(incarnation, heir uint64, returned bool) {
	delete(r.lessees, incarnation)
	if _, ok := r.lessees[heir]; !ok {
		heir = 0
		for other := range r.lessees {
			if heir == 0 || other < heir {
				heir = other
			}
		}
	}
	for _, id := range r.allocs {
		a := r.Snapshot().Allocation(id)
		if a.Lease != incarnation || a.Lease == 0 && a.ClientStatus == drover.AllocClientPending {
			continue
		}
		r.Update(id, func(a *drover.Allocation) {
			if a.Claim != nil || returned {
				a.Lease = heir
			} else {
				a.DesiredStatus = drover.AllocDesiredStop
			}
		})
	}
	r.changed.Send()
}

// server is a lessee, and its way to the others.
type server struct {
	*lessee.Lessee
	r    *region
	name string
	cut  atomic.Bool // from the others
	gone atomic.Bool // its process ended, and nobody listens where it was
	stop context.CancelFunc
	done chan struct{}
}

var errCut = drover.Errorf(drover.Unavailable, "cut off")

// BeginIncarnation implements lessee.Intake.
func (s *server) BeginIncarnation(_ context.Context, name string) (begun, former uint64, err error) {
	if s.cut.Load() {
		return 0, 0, errCut
	}
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	former = s.r.incarnationLocked(name)
	s.r.last++
	s.r.lessees[s.r.last] = name
	s.r.endLocked(former, s.r.last, false)
	return s.r.last, former, nil
}

// EndIncarnation implements lessee.Intake.
func (s *server) EndIncarnation(_ context.Context, incarnation, heir uint64, returned bool) error {
	if s.cut.Load() {
		return errCut
	}
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.r.endLocked(incarnation, heir, returned)
	return nil
}

// MoveClaimed implements lessee.Intake.
func (s *server) MoveClaimed(_ context.Context, incarnation, heir uint64) error {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	for _, id := range s.r.allocs {
		if a := s.r.Snapshot().Allocation(id); a.Lease == incarnation && a.Claim != nil {
			s.r.Update(id, func(a *drover.Allocation) { a.Lease = heir })
		}
	}
	return nil
}

// keeps implements lessee.Deps.Keeps.
func (r *region) keeps(incarnation uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.allocs, func(id string) bool {
		a := r.Snapshot().Allocation(id)
		return a.Lease == incarnation && a.Claim != nil
	})
}

// to is another server, if it can be reached.
func (s *server) to(name string) (*server, error) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	to := s.r.servers[name]
	if name == "" {
		to = s.r.leader
	}
	if to == nil || to != s && (s.cut.Load() || to.cut.Load()) {
		return nil, errCut
	}
	return to, nil
}

// peers are the others, as a server reaches them.
type peers struct{ of *server }

// Renew implements lessee.Peers.
func (p peers) Renew(_ context.Context, incarnation uint64) error {
	to, err := p.of.to("")
	if err != nil {
		return err
	}
	return to.AnswerRenew(incarnation)
}

// Gone implements lessee.Peers.
func (p peers) Gone(_ context.Context, name string) bool {
	p.of.r.mu.Lock()
	defer p.of.r.mu.Unlock()
	return p.of.r.servers[name].gone.Load()
}

// Withhold implements lessee.Peers.
func (p peers) Withhold(ctx context.Context, name, token string, allocIDs []string) error {
	to, err := p.of.to(name)
	if err != nil {
		return err
	}
	return to.AnswerWithhold(ctx, token, allocIDs)
}

// GiveBack implements lessee.Peers.
func (p peers) GiveBack(_ context.Context, name, token string) error {
	to, err := p.of.to(name)
	if err == nil {
		to.AnswerGiveBack(token)
	}
	return err
}

// Wants implements lessee.Peers.
func (p peers) Wants(_ context.Context, token string) (bool, error) {
	to, err := p.of.to("")
	if err != nil {
		return false, err
	}
	return to.AnswerWants(token)
}

// leads reports whether the server leads, as far as it knows.
func (s *server) leads() bool {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	return s.r.leader == s
}

// lead calls term while the server leads.
func (s *server) lead(ctx context.Context, term func(context.Context)) {
	for ctx.Err() == nil {
		changed := s.r.changed.C()
		if s.leads() {
			of, cancel := context.WithCancel(ctx)
			var ended sync.WaitGroup
			ended.Go(func() { term(of) }) // ends with of
			for s.leads() && ctx.Err() == nil {
				select {
				case <-changed:
				case <-ctx.Done():
				}
				changed = s.r.changed.C()
			}
			cancel()
			ended.Wait()
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

func (r *region) server(name string) *server {
	s := &server{r: r, name: name}
	dir := r.t.TempDir()
	owner := func(allocID string) string {
		for _, l := range r.list() {
			if l.Incarnation == r.Snapshot().Allocation(allocID).Lease {
				return l.Server
			}
		}
		return ""
	}
	deps := lessee.Deps{
		Shares: func() bool { return !r.old.Load() }, Raised: r.changed.C, Unclaimed: r.unclaimed,
		Lead: s.lead, Leads: s.leads, Lessees: r.list, Changed: r.changed.C, Owner: owner, Keeps: r.keeps, Intake: s, Peers: peers{s},
		Open: func(lease, former uint64, holds func() bool) (*lessee.Life, error) {
			d := r.Deps()
			d.Holds = holds
			runners, err := runner.New(runner.Config{
				JournalPath: filepath.Join(dir, "journal"), Lease: lease, Former: former, Sure: lease == 0,
			}, d)
			require.NoError(r.t, err)
			executions, err := executor.New(executor.Config{LedgerPath: filepath.Join(dir, "ledger"), Lease: lease}, executor.Deps{
				Runners: runners, Keeping: runners, Clock: clock.Wall{}, IDs: id.NewSeeded(lease), Log: d.Log,
			})
			return &lessee.Life{Runners: runners, Executions: executions}, err
		},
		Linearize: func(context.Context) error {
			if s.cut.Load() || r.lag.Load() {
				return errCut
			}
			return nil
		},
		Record: func(uint64) runner.Intake { return r.Control }, Clock: clock.Wall{}, IDs: id.NewSeeded(99),
		Log: slog.New(slog.DiscardHandler),
	}
	var err error
	s.Lessee, err = lessee.New(lessee.Config{Server: name, Journal: filepath.Join(dir, "journal")}, deps)
	require.NoError(r.t, err)
	return s
}

// run runs a server until stop is called, and has the first one lead.
func (r *region) run(name string) *server {
	s := r.servers[name]
	r.mu.Lock()
	if r.leader == nil {
		r.leader = s
	}
	r.mu.Unlock()
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan struct{})
	go func() { // ends with ctx
		defer close(done)
		require.NoError(r.t, s.Run(ctx))
	}()
	s.stop, s.done = cancel, done
	time.Sleep(leases.Renew) // of the bubble: the first leader promises nothing before it has begun
	synctest.Wait()
	return s
}

// end ends the server's process.
func (s *server) end() { s.stop(); <-s.done }

var atOnce = execution.ClaimRequest{Environment: "python", Wait: -1}

// put makes the environment.
func (s *server) put(t *testing.T) {
	t.Helper()
	_, err := s.PutEnvironment(t.Context(), execution.Environment{ID: "python", Image: "host"})
	require.NoError(t, err)
	s.r.StopRefill()
	synctest.Wait()
}

// occupy claims a runner and has a command run in it for an hour. The claim is recorded when it returns.
func (s *server) occupy(t *testing.T) (execution.Runner, execution.Execution) {
	t.Helper()
	got, err := s.Claim(t.Context(), execution.ClaimRequest{Environment: "python", Wait: -1, IdleTimeout: -1})
	require.NoError(t, err)
	x, err := s.CreateRequest(t.Context(), got.ID, execution.Request{Spec: execution.Spec{
		Argv: []string{"/bin/sh", "-c", "sleep 1h"}, Detach: -1,
	}})
	require.NoError(t, err)
	time.Sleep(time.Minute)
	return got, x
}

// fail has a runner's node say that it failed, so that what waits for its end ends.
func (r *region) fail(of execution.Runner) {
	r.Update(of.AllocID, func(a *drover.Allocation) { a.ClientStatus = drover.AllocClientFailed })
	time.Sleep(time.Minute)
}
