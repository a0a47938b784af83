package executor

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exec/ledger"
)

// How long executions are looked for whose connection was lost.
const (
	firstRetry   = 20 * time.Millisecond
	maxRetry     = time.Second
	reattachFor  = 30 * time.Second
	recoverFor   = 2 * time.Minute
	settleFor    = 3 * time.Second // in which a node may not know its tasks yet
	awaitRecover = 5 * time.Second // a request for an execution that may still be found
	answerWithin = 5 * time.Second // of a node, at one time: it may answer on the next connection
	looksAtOnce  = 64              // runners that are looked through at a time
)

// reattach connects again to an execution that outlives its session: the node's agent restarted, or the connection to
// it broke. It reports false when there is nothing to go on with.
func (x *Execution) reattach(ctx context.Context, cause error) bool {
	if errors.Is(cause, io.EOF) || drover.CodeOf(cause) == drover.Gone {
		return false
	}
	execution.LetGo(x.current()) // it is broken, or this server stops
	limit, cancel := x.clock.WithTimeout(ctx, reattachFor)
	defer cancel()
	for wait := firstRetry; clock.Sleep(limit, x.clock, wait); wait = min(2*wait, maxRetry) {
		x.mu.Lock()
		from := execution.Offsets{Stdout: x.journal.Of(execution.Stdout).End(), Stderr: x.journal.Of(execution.Stderr).End()}
		x.mu.Unlock()
		try, tried := x.clock.WithTimeout(limit, answerWithin)
		session, err := x.use.Workloads().AttachExecution(try, x.runner.AllocID, taskName, x.id, from)
		tried()
		switch {
		case err == nil:
			x.mu.Lock()
			x.session = session
			x.stdin.change()
			x.mu.Unlock()
			return true
		case drover.CodeOf(err) == drover.Gone || drover.CodeOf(err) == drover.NotFound:
			return false
		}
	}
	return false
}

// recover takes up the executions that run in claimed runners from before this process started. A node that is away,
// or does not know the runner yet, is asked again for a while. One that answers has found its tasks. It is not asked
// again, since each look begins the runner's idle time anew. What is remembered of the executions is in running.
func (s *Executor) recover(ctx context.Context, pending []string, running map[string]ledger.Record) {
	defer s.endRecovery()
	limit, cancel := s.deps.Clock.WithTimeout(ctx, recoverFor)
	defer cancel()
	settled := s.deps.Clock.Now().Add(settleFor)
	for wait := firstRetry; len(pending) > 0; wait = min(2*wait, maxRetry) {
		sure := !s.deps.Clock.Now().Before(settled)
		s.willSee(pending)
		later := make([]string, len(pending))
		var looks errgroup.Group // at once, as a node that answers nothing must not hold up the others
		looks.SetLimit(looksAtOnce)
		for i, id := range pending {
			looks.Go(func() error {
				if again(s.recoverRunner(limit, id, running), sure) {
					later[i] = id
				} else {
					s.saw(id)
				}
				return nil
			})
		}
		_ = looks.Wait() // none fails
		if pending = slices.DeleteFunc(later, func(id string) bool { return id == "" }); len(pending) > 0 {
			if more := s.listed(s.deps.Keeping.Adopted(limit)); len(more) > 0 {
				maps.Copy(running, s.inherit(ctx))
				pending = append(pending, more...)
			}
		}
		if len(pending) > 0 && !clock.Sleep(limit, s.deps.Clock, wait) {
			if ctx.Err() == nil {
				s.deps.Log.Warn("looking for running executions: nodes are away", "runners", len(pending))
			}
			return
		}
	}
}

// listed are the ids of runners in which something may run. An error counts as none: then nothing is recovered, and the
// executions are declared lost.
func (s *Executor) listed(ids []string, err error) []string {
	if err != nil {
		s.deps.Log.Warn("looking for running executions", "error", err)
	}
	return ids
}

// inheritEvery is how often a server looks for ended servers that owed a webhook and kept no runner.
const inheritEvery = time.Minute

// takeUp takes up, until ctx ends, the executions in runners that come to this server from servers that ended.
func (s *Executor) takeUp(ctx context.Context) {
	wait := clock.Forever
	if s.deps.Records != nil {
		wait = inheritEvery
	}
	for clock.Await(ctx, s.deps.Clock, wait, s.deps.Keeping.More()) {
		s.beginRecovery()
		adopted := s.listed(s.deps.Keeping.Adopted(ctx))
		running := s.inherit(ctx)
		s.recover(ctx, adopted, running)
		s.lose(ctx, running)
	}
}

// recoverRunner takes up the executions of one runner.
func (s *Executor) recoverRunner(ctx context.Context, runnerID string, running map[string]ledger.Record) error {
	use, err := s.deps.Runners.UseNow(ctx, runnerID)
	if err != nil {
		return err
	}
	defer use.Done()
	limit, cancel := s.deps.Clock.WithTimeout(ctx, answerWithin)
	list, err := use.Workloads().Executions(limit, use.Runner().AllocID)
	cancel()
	if err != nil {
		return err
	}
	for _, x := range list {
		if of := running[x.ID].Execution.RunnerID; of != "" && of != runnerID { // a node may speak of its own runners only
			s.deps.Log.Warn("a node names an execution of another runner", "execution", x.ID, "runner", of, "named_for", runnerID)
			continue
		}
		if s.keptOnly(x) {
			continue
		}
		if err := s.recoverExecution(ctx, runnerID, x, termsOf(running[x.ID])); err != nil {
			return err
		}
	}
	return nil
}

// keptOnly reports whether a node only keeps the output of an execution whose end was told. It is kept here, too, to be listed.
func (s *Executor) keptOnly(found execution.Execution) bool {
	return s.endedElsewhere(found.ID) != nil || found.Taken
}

// recoverExecution takes up one execution, from its first byte that is still kept. Each has a use of its own,
// since uses end with their executions. One that this process started itself is left alone.
func (s *Executor) recoverExecution(ctx context.Context, runnerID string, found execution.Execution, of terms) error {
	if s.known(found.ID) {
		return nil
	}
	use, err := s.deps.Runners.UseNow(ctx, runnerID)
	if err != nil {
		return err
	}
	limit, cancel := s.deps.Clock.WithTimeout(ctx, answerWithin)
	defer cancel()
	session, err := use.Workloads().AttachExecution(limit, use.Runner().AllocID, taskName, found.ID, execution.Offsets{})
	if err != nil {
		use.Done()
		return err
	}
	found.Spec.ID, found.Spec.Keep = found.ID, 0
	if _, err := s.adopt(use, found.Spec, session, of); err != nil {
		use.Done()
		return err
	}
	s.found.Send()
	return nil
}

// willSee notes which runners are to be looked through.
func (s *Executor) willSee(runnerIDs []string) {
	unseen := make(map[string]bool, len(runnerIDs))
	for _, id := range runnerIDs {
		unseen[id] = true
	}
	s.mu.Lock()
	s.unseen = unseen
	s.mu.Unlock()
	s.found.Send()
}

// saw notes that it is known what runs in a runner.
func (s *Executor) saw(runnerID string) {
	s.mu.Lock()
	delete(s.unseen, runnerID)
	s.mu.Unlock()
	s.found.Send()
}

// seen reports whether it is known what runs in a runner, as far as that is looked for.
func (s *Executor) seen(runnerID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unseen != nil && !s.unseen[runnerID]
}

// awaitSeen waits until it is known what runs in a runner: after a restart its node is asked. Errors: Unavailable.
func (s *Executor) awaitSeen(ctx context.Context, runnerID string) error {
	ctx, cancel := s.deps.Clock.WithTimeout(ctx, awaitRecover)
	defer cancel()
	for {
		found := s.found.C()
		if s.seen(runnerID) {
			return nil
		}
		select {
		case <-found:
		case <-s.looking():
			return nil
		case <-ctx.Done():
			return drover.Errorf(drover.Unavailable, "runner %s: its node has not said yet what runs in it", runnerID)
		}
	}
}

// awaitRecovered waits for an execution that may still be found; nil if there is none. Errors: Unavailable: executions are still looked
// for, as a node is away, so that nobody can say.
func (s *Executor) awaitRecovered(ctx context.Context, executionID string) (*Execution, error) {
	ctx, cancel := s.deps.Clock.WithTimeout(ctx, awaitRecover)
	defer cancel()
	for {
		found := s.found.C()
		if x := s.find(executionID); x != nil {
			return x, nil
		}
		select {
		case <-found:
		case <-s.looking():
			return s.find(executionID), nil
		case <-ctx.Done():
			return nil, drover.Errorf(drover.Unavailable, "execution %s is looked for: a node has not said yet what runs on it", executionID)
		}
	}
}

// again reports whether the error may pass. An agent that just started does not know its tasks yet.
func again(err error, sure bool) bool {
	switch drover.CodeOf(err) {
	case drover.NotFound, drover.Gone:
		return !sure
	case drover.Invalid, drover.NotImplemented:
		return false
	}
	return err != nil
}
