package lessee_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exec/exectest"
	"github.com/drover-project/drover/internal/exec/executor"
	"github.com/drover-project/drover/internal/exec/runner"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/server/lessee"
	"github.com/drover-project/drover/internal/wake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// region is a state with the servers of a region, and what the state machine does with leases in a few lines.
type region struct {
	*exectest.Control
	t *testing.T

	mu      sync.Mutex // guards what follows
	last    uint64
	lessees map[uint64]string
	allocs  []string
	changed wake.Broadcast
}

// BeginIncarnation implements lessee.Intake.
func (r *region) BeginIncarnation(ctx context.Context, server string) (begun, former uint64, err error) {
	r.mu.Lock()
	r.last++
	begun = r.last
	for incarnation, of := range r.lessees {
		if of == server {
			former = incarnation
		}
	}
	r.lessees[begun] = server
	r.changed.Send()
	r.mu.Unlock()
	return begun, former, r.EndIncarnation(ctx, former, begun, false)
}

// EndIncarnation implements lessee.Intake.
func (r *region) EndIncarnation(_ context.Context, incarnation, heir uint64, returned bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.lessees, incarnation)
	r.changed.Send()
	if returned {
		heir = r.last
	}
	for _, id := range r.allocs {
		if r.Snapshot().Allocation(id).Lease != incarnation {
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
	return nil
}

// add adds a warm runner that is leased to the newest incarnation.
func (r *region) add() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.allocs = append(r.allocs, r.AddLeased("python", r.last).ID)
}

func (r *region) list() (all []*cluster.Lessee) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for incarnation, server := range r.lessees {
		all = append(all, &cluster.Lessee{Server: server, Incarnation: incarnation})
	}
	return all
}

// server is one that leads when it is told to.
type server struct {
	*lessee.Lessee
	leading atomic.Bool
	terms   chan context.Context
	ended   chan struct{} // has an element for each term that ended
}

func (r *region) server(name string) *server {
	s := &server{terms: make(chan context.Context), ended: make(chan struct{})}
	dir := r.t.TempDir()
	deps := lessee.Deps{
		Lead: func(ctx context.Context, term func(context.Context)) {
			for {
				select {
				case of := <-s.terms:
					term(of)
					s.ended <- struct{}{}
				case <-ctx.Done():
					return
				}
			}
		},
		Leads: s.leading.Load,
		Open: func(lease, former uint64, holds func() bool) (*lessee.Life, error) {
			d := r.Deps()
			d.Holds = holds
			runners, err := runner.New(runner.Config{JournalPath: filepath.Join(dir, "journal"), Lease: lease, Former: former}, d)
			require.NoError(r.t, err)
			executions, err := executor.New(executor.Config{LedgerPath: filepath.Join(dir, "ledger"), Lease: lease}, executor.Deps{
				Runners: runners, Clock: clock.Wall{}, IDs: id.NewSeeded(lease), Log: d.Log,
			})
			return &lessee.Life{Runners: runners, Executions: executions}, err
		},
		Lessees: r.list, Changed: r.changed.C, Intake: r, Record: func(uint64) runner.Intake { return r.Control },
		Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler),
	}
	var err error
	s.Lessee, err = lessee.New(lessee.Config{Server: name, Journal: filepath.Join(dir, "journal")}, deps)
	require.NoError(r.t, err)
	return s
}

// leads begins a term; end ends it, and returns when the server's service has ended.
func (s *server) leads(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	s.leading.Store(true)
	s.terms <- ctx
	return func() { s.leading.Store(false); cancel(); <-s.ended }
}

// run runs the servers until ctx ends.
func run(ctx context.Context, t *testing.T, servers ...*server) (wait func()) {
	t.Helper()
	var running sync.WaitGroup
	for _, s := range servers {
		running.Go(func() { require.NoError(t, s.Run(ctx)) }) // ends with ctx
	}
	return running.Wait
}

var atOnce = execution.ClaimRequest{Environment: "python", Wait: -1}

// A leader that another replaces gives it the warm runners that it has not handed out; one that is gone cannot.
func TestWarmRunnersAreGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &region{Control: exectest.NewControl(), t: t, lessees: map[uint64]string{}}
		a, b, c := r.server("a"), r.server("b"), r.server("c")
		ctx, stop := context.WithCancel(t.Context())
		wait := run(ctx, t, a, b, c)
		endA := a.leads(ctx)
		_, err := a.PutEnvironment(t.Context(), execution.Environment{ID: "python", Image: "host"})
		require.NoError(t, err)
		r.StopRefill()
		r.add()
		r.add()
		synctest.Wait()
		first, err := a.Claim(t.Context(), atOnce)
		require.NoError(t, err)
		began := time.Now()
		endB := b.leads(ctx)
		endA()
		synctest.Wait()
		second, err := b.Claim(t.Context(), atOnce)
		require.NoError(t, err)
		require.NotEqual(t, first.AllocID, second.AllocID)
		require.Less(t, time.Since(began), time.Second)

		r.add()
		synctest.Wait()
		endC := c.leads(ctx) // b knows nothing of it
		time.Sleep(2 * time.Second)
		require.Len(t, r.list(), 1)
		_, err = c.Claim(t.Context(), atOnce)
		require.Equal(t, drover.Exhausted, drover.CodeOf(err), "b may have handed it out")
		endC()
		endB()
		stop()
		wait()
	})
}

// The service follows the leader. What the former leader handed out and recorded goes on at the next one, an execution too; who
// waited there is told to ask again, and its idle timers stop nothing.
func TestTheServiceFollowsTheLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &region{Control: exectest.NewControl(), t: t, lessees: map[uint64]string{}}
		a, b := r.server("a"), r.server("b")
		ctx, stop := context.WithCancel(t.Context())
		wait := run(ctx, t, a, b)
		end := a.leads(ctx)
		_, err := a.PutEnvironment(t.Context(), execution.Environment{ID: "python", Image: "host"})
		require.NoError(t, err)
		r.StopRefill()
		r.add()
		r.add()
		synctest.Wait()
		got, err := a.Claim(t.Context(), execution.ClaimRequest{Environment: "python", Wait: -1, IdleTimeout: 10 * time.Second})
		require.NoError(t, err)
		x, err := a.CreateRequest(t.Context(), got.ID, execution.Request{Spec: execution.Spec{
			Argv: []string{"/bin/sh", "-c", "sleep 1h"}, Detach: -1,
		}})
		require.NoError(t, err)
		session, err := a.Attach(t.Context(), x.ID, execution.Offsets{})
		require.NoError(t, err)
		_, err = a.Claim(t.Context(), execution.ClaimRequest{Environment: "python", Wait: -1, IdleTimeout: -1})
		require.NoError(t, err)
		waits := make(chan error, 1)
		go func() { // ends with the term
			_, err := a.Claim(t.Context(), execution.ClaimRequest{Environment: "python", Wait: time.Hour})
			waits <- err
		}()
		synctest.Wait()
		end()
		require.Equal(t, drover.NotLeader, drover.CodeOf(<-waits))
		for {
			f, err := session.Next(t.Context())
			require.Nil(t, f.Receipt, "it runs on")
			if err != nil {
				require.Equal(t, drover.Unavailable, drover.CodeOf(err))
				break
			}
		}

		end = b.leads(ctx)
		time.Sleep(2 * time.Second)
		require.Len(t, r.list(), 1)
		r.add()
		synctest.Wait()
		_, err = b.Claim(t.Context(), execution.ClaimRequest{Environment: "python", Wait: -1})
		require.NoError(t, err)
		found, err := b.Info(t.Context(), x.ID)
		require.NoError(t, err)
		require.True(t, found.Running)
		_, err = a.Claim(t.Context(), execution.ClaimRequest{Environment: "python", Wait: -1})
		require.Equal(t, drover.NotLeader, drover.CodeOf(err))
		time.Sleep(time.Hour)
		synctest.Wait()
		_, err = b.Runner(t.Context(), got.ID)
		require.NoError(t, err, "it is in use")
		r.Update(got.AllocID, func(a *drover.Allocation) { a.ClientStatus = drover.AllocClientFailed })
		synctest.Wait()
		end()

		// The first comes back with what it wrote down. It tells no end of an execution that another server kept.
		end = a.leads(ctx)
		time.Sleep(time.Minute)
		_, err = a.Info(t.Context(), x.ID)
		require.Equal(t, drover.NotFound, drover.CodeOf(err))
		end()
		stop()
		wait()
	})
}
