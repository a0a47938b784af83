package executor

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/ledger"
	"github.com/drover-project/drover/internal/exec/listing"
)

// Open starts the command and attaches to it from its first byte. Errors: as Start.
func (s *Executor) Open(ctx context.Context, runnerID string, spec execution.Spec) (execution.Session, error) {
	x, err := s.Start(ctx, runnerID, spec)
	if err != nil {
		return nil, err
	}
	return x.Attach(execution.Offsets{}), nil
}

// Create starts the command for those who attach later. Errors: as Start.
func (s *Executor) Create(ctx context.Context, runnerID string, spec execution.Spec) (execution.Execution, error) {
	x, err := s.Start(ctx, runnerID, spec)
	if err != nil {
		return execution.Execution{}, err
	}
	return x.Info(), nil
}

// Info returns an execution as it is now. Errors: NotFound.
func (s *Executor) Info(ctx context.Context, executionID string) (execution.Execution, error) {
	x, err := s.Execution(ctx, executionID)
	if err != nil {
		return execution.Execution{}, err
	}
	return x.Info(), nil
}

// Wait returns the execution when it ended. Errors: NotFound; ctx's.
func (s *Executor) Wait(ctx context.Context, executionID string) (execution.Execution, error) {
	x, err := s.Execution(ctx, executionID)
	if err != nil {
		return execution.Execution{}, err
	}
	if _, err := x.Wait(ctx); err != nil {
		return x.Info(), err
	}
	return x.Info(), nil
}

// Statement is what may be signed of an execution that ended; the same wherever and whenever it is asked for. Errors: NotFound; Conflict
// while it runs.
func (s *Executor) Statement(ctx context.Context, executionID string) (execution.Statement, error) {
	x, err := s.Execution(ctx, executionID)
	if err != nil {
		return execution.Statement{}, err
	}
	info := x.Info()
	if info.Receipt == nil {
		return execution.Statement{}, drover.Errorf(drover.Conflict, "execution %s still runs: it has no receipt yet", executionID)
	}
	return execution.Statement{
		Execution: info.ID, Runner: info.RunnerID, Environment: x.runner.Environment, Namespace: execution.NamespaceOf(info.RunnerID),
		Argv: ledger.Shortened(info.Spec.Argv), Receipt: *info.Receipt,
	}, nil
}

// Attach attaches to an execution from the offsets on. Of one that ended at another server the output comes from its runner. Errors:
// NotFound; Unavailable: the runner's node is away.
func (s *Executor) Attach(ctx context.Context, executionID string, from execution.Offsets) (execution.Session, error) {
	x, err := s.Execution(ctx, executionID)
	if err != nil {
		return nil, err
	}
	return s.attach(ctx, x, from)
}

// Control is what can be done to a running execution beside reading: Write, CloseStdin, Resize, Signal. Errors:
// NotFound.
func (s *Executor) Control(ctx context.Context, executionID string) (execution.Session, error) {
	x, err := s.Execution(ctx, executionID)
	if err != nil {
		return nil, err
	}
	return &Reader{Execution: x}, nil // attached to nothing: its Close changes nothing
}

// List returns a runner's executions, running and lately ended, sorted by id. Errors: NotFound, Gone; Unavailable: its node is away, or has
// not said yet what runs in it.
func (s *Executor) List(ctx context.Context, runnerID string) ([]execution.Execution, error) {
	use, err := s.deps.Runners.Use(ctx, runnerID)
	if err != nil {
		return nil, err
	}
	use.Done()
	if err := s.awaitSeen(ctx, runnerID); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.expireLocked()
	all := maps.Clone(s.byID)
	s.mu.Unlock()
	list := []execution.Execution{}
	for _, x := range all {
		if x.runner.ID == runnerID {
			list = append(list, x.Info())
		}
	}
	slices.SortFunc(list, func(a, b execution.Execution) int { return cmp.Compare(a.ID, b.ID) })
	return list, nil
}

// SelectExecutions returns a page of what runs here, and of what ended here and is kept, as far as the namespaces of its runners are to be
// seen. What the Records have of it is left out: they are the same at all servers. Errors: Invalid.
func (s *Executor) SelectExecutions(
	_ context.Context, q execution.ListQuery, sees func(namespace string) bool,
) (execution.ListPage, error) {
	page, err := listing.New(q)
	if err != nil {
		return execution.ListPage{}, err
	}
	s.mu.Lock()
	s.expireLocked()
	all := slices.AppendSeq(make([]*Execution, 0, len(s.byID)), maps.Values(s.byID))
	s.mu.Unlock()
	var l execution.Listed // one for all: there may be a hundred thousand
	for _, x := range all {
		if !sees(execution.NamespaceOf(x.runner.ID)) {
			continue
		}
		if x.list(&l); !page.Keeps(&l) {
			continue
		}
		if _, recorded := s.endRecord(x.id); recorded && !l.Running {
			continue
		}
		l.Spec.Argv = ledger.Shortened(l.Spec.Argv)
		page.Add(&l)
	}
	return page.Page(), nil
}

// list makes l the execution as lists have it.
func (x *Execution) list(l *execution.Listed) {
	l.Namespace, l.Environment = execution.NamespaceOf(x.runner.ID), x.runner.Environment
	x.mu.Lock()
	defer x.mu.Unlock()
	l.Execution = x.infoLocked()
	l.Spec.Env = nil
	l.StartedAt, l.EndedAt = x.begun, x.endedAt
	if x.receipt != nil && !x.receipt.StartedAt.IsZero() {
		l.StartedAt = x.receipt.StartedAt
	}
}
