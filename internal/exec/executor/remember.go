package executor

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/ledger"
)

// startRecord is what is written down of an execution that was started.
func (s *Executor) startRecord(r execution.Runner, spec execution.Spec, of terms) ledger.Record {
	return ledger.Record{
		Execution:   execution.Execution{ID: spec.ID, RunnerID: r.ID, AllocID: r.AllocID, Task: taskName, Spec: spec, Running: true},
		Environment: r.Key(), Webhook: of.webhook, Request: of.request, Lease: s.cfg.Lease,
	}
}

// record is what is written down of an execution's end.
func (x *Execution) record(receipt execution.Receipt, at time.Time) ledger.Record {
	info := x.Info()
	info.Running, info.Receipt = false, &receipt
	return ledger.Record{Execution: info, Environment: x.runner.Key(), Webhook: x.webhook, Request: x.request, EndedAt: at}
}

// remember takes up what an earlier process or another server wrote down: ended executions with their receipts, and
// webhooks that were not told. It returns the executions whose end nobody saw, and which are this server's to tell of.
func (s *Executor) remember(ctx context.Context) (running map[string]ledger.Record, err error) {
	records, err := s.ledger.Read(s.deps.Clock.Now().Add(-s.cfg.Retain))
	if err != nil {
		return nil, err
	}
	records = s.takeOver(ctx, records)
	slices.SortStableFunc(records, func(a, b ledger.Record) int { return a.EndedAt.Compare(b.EndedAt) })
	running = map[string]ledger.Record{}
	for _, r := range records {
		if s.known(r.Execution.ID) {
			continue // it was started here just now
		}
		if r.Execution.Receipt == nil {
			if !s.tells(ctx, r) {
				s.ledger.Forget(r.Execution.ID)
				continue
			}
			running[r.Execution.ID] = r
			if r.Lease != s.cfg.Lease {
				r.Lease = s.cfg.Lease
				s.writeDown(r)
			}
			continue
		}
		x := s.restore(r)
		if !r.Dropped {
			s.keep(x)
		}
		s.notify(ctx, x)
	}
	return running, nil
}

// tells reports whether this server is the one that publishes how an execution from before the restart ended. It is if nobody
// else has kept its runner since, or if the servers' common records say that it still runs and is this server's to look after.
// Who took a runner over sees the end.
func (s *Executor) tells(ctx context.Context, r ledger.Record) bool {
	recorded := s.deps.Records != nil && s.deps.Records.Execution(r.Execution.ID) != nil
	return s.deps.Keeping.Keeps(r.Execution.AllocID, r.Lease) || recorded && s.looksAfter(ctx, r.Execution.AllocID)
}

// termsOf are those that an execution was started on, as they were written down.
func termsOf(r ledger.Record) terms {
	return terms{webhook: r.Webhook, request: r.Request, recorded: r.Recorded}
}

// restore makes an ended execution of what was written down. Of its output only the size is known; its runner may have kept it.
func (s *Executor) restore(r ledger.Record) *Execution {
	namespace, environment := execution.SplitKey(r.Environment)
	x := &Execution{
		id: r.Execution.ID, spec: r.Execution.Spec, pid: r.Execution.Pid, receipt: r.Execution.Receipt, endedAt: r.EndedAt,
		runner: execution.Runner{ID: r.Execution.RunnerID, AllocID: r.Execution.AllocID, Environment: environment, Namespace: namespace},
		terms:  termsOf(r), clock: s.deps.Clock, window: s.cfg.Window, stop: func() {}, done: make(chan struct{}),
		readers: map[*Reader]struct{}{}, wake: make(chan struct{}), base: s.base, absent: newAbsent(),
	}
	x.journal.Of(execution.Stdout).Lost(x.receipt.StdoutBytes)
	x.journal.Of(execution.Stderr).Lost(x.receipt.StderrBytes)
	close(x.done)
	return x
}

// keep makes a restored execution one that can be asked for, and returns it; there may be one already.
func (s *Executor) keep(x *Execution) *Execution {
	s.mu.Lock()
	if other := s.byID[x.id]; other != nil {
		s.mu.Unlock()
		return other
	}
	s.byID[x.id] = x
	s.mu.Unlock()
	s.retire(x)
	return x
}

// lose ends what was running before and was not found again.
func (s *Executor) lose(ctx context.Context, running map[string]ledger.Record) {
	if ctx.Err() != nil {
		return
	}
	limit, cancel := s.deps.Clock.WithTimeout(ctx, awaitRecover)
	defer cancel()
	for _, id := range slices.Sorted(maps.Keys(running)) {
		if s.find(id) != nil {
			continue
		}
		r := running[id]
		r.Execution.Running = false
		r.Execution.Receipt = &execution.Receipt{
			ExecutionID: id, ExitCode: 137, Signal: 9, Cause: execution.CauseRunnerGone, Truncated: true,
			Error: s.lostBecause(limit, r.Execution),
		}
		r.EndedAt = s.deps.Clock.Now()
		s.writeDown(r)
		x := s.restore(r)
		s.mu.Lock()
		s.byID[x.id] = x
		s.mu.Unlock()
		s.tellEnd(ctx, x)
	}
}

// lostBecause says what is known of an execution that was not found again, and of its runner.
func (s *Executor) lostBecause(ctx context.Context, x execution.Execution) string {
	const lost = "the server restarted while it ran, and did not find it again: "
	use, err := s.deps.Runners.UseNow(ctx, x.RunnerID)
	if err != nil {
		return lost + err.Error()
	}
	defer use.Done()
	session, err := use.Workloads().AttachExecution(ctx, x.AllocID, taskName, x.ID, execution.Offsets{})
	if err != nil {
		return lost + err.Error() + "; its runner lives on"
	}
	defer session.Close() //nolint:errcheck // it is dead
	if err := session.Signal(ctx, "KILL"); err != nil {
		return lost + err.Error()
	}
	return lost + "it was there only later, and was killed"
}
