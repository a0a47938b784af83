package executor

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exec/ledger"
)

// Records is what the servers of a cluster keep together about executions, for a while. Teller puts it there, and each server
// reads it from its own state.
type Records interface {
	// Ready returns once this server's state has all that was recorded before. Errors: NotLeader, Unavailable.
	Ready(ctx context.Context) error
	// Execution returns what is kept of an execution; nil if nothing is.
	Execution(id string) *execution.Record
	// UntoldExecutions yields those whose webhook was not told yet, running or ended.
	UntoldExecutions() iter.Seq[*execution.Record]
}

// recordOf is the execution as the ledger would have it.
func recordOf(r *execution.Record) ledger.Record {
	x := r.Execution
	out := ledger.Record{
		Execution: x, Environment: strings.TrimSuffix(x.RunnerID, "-"+x.AllocID), Webhook: r.Webhook, Request: r.Request, Recorded: true,
	}
	if !x.Running {
		out.EndedAt = r.Time()
	}
	return out
}

// endRecord returns how an execution ended at another server, or before this process, if that is kept still.
func (s *Executor) endRecord(executionID string) (r ledger.Record, ok bool) {
	if s.deps.Records == nil {
		return ledger.Record{}, false
	}
	kept := s.deps.Records.Execution(executionID)
	if kept == nil || kept.Execution.Running {
		return ledger.Record{}, false
	}
	r = recordOf(kept)
	return r, r.Webhook != "" || s.deps.Clock.Now().Sub(r.EndedAt) < s.cfg.Retain
}

// endedElsewhere returns an execution of which only the records know how it ended; nil without one. It is kept for the next who asks,
// unless its webhook is to be told: inherit looks after those that are not kept.
func (s *Executor) endedElsewhere(executionID string) *Execution {
	r, ok := s.endRecord(executionID)
	if !ok {
		return nil
	}
	x := s.restore(r)
	if r.Webhook == "" {
		return s.keep(x)
	}
	return x
}

// told reports whether the servers know that the execution's webhook needs no telling any more.
func (s *Executor) told(executionID string) bool {
	r, ok := s.endRecord(executionID)
	return ok && r.Webhook == ""
}

// promise writes down what was started, before anybody hears of it. This must succeed only for an execution with a webhook.
// With Records it also waits for the log: else nobody would know whom to tell when this server is gone.
func (s *Executor) promise(ctx context.Context, r execution.Runner, spec execution.Spec, of *terms) error {
	started := s.startRecord(r, spec, *of)
	if err := s.ledger.Write(started); err != nil {
		if of.webhook != "" {
			return drover.Errorf(drover.Unavailable, "writing down which webhook is to be told: %w", err)
		}
		s.deps.Log.Warn("writing an execution down", "execution", spec.ID, "error", err)
	}
	if of.webhook == "" || s.deps.Records == nil || s.deps.Teller == nil {
		return nil
	}
	event := withoutSecrets(Event{Type: EventStarted, Execution: started.Execution, Webhook: of.webhook, Request: of.request})
	if err := s.deps.Teller.TellExecutions(ctx, []Event{event}); err != nil {
		s.takeBack(started, err)
		return err
	}
	of.recorded = true
	return nil
}

// takeBack ends an execution whose start could not be recorded, without telling its webhook. The log may have it all the same:
// a failed proposal only means that the proposer does not know.
func (s *Executor) takeBack(r ledger.Record, why error) {
	r.Webhook, r.EndedAt, r.Execution.Running = "", s.deps.Clock.Now(), false
	r.Execution.Receipt = &execution.Receipt{
		ExecutionID: r.Execution.ID, ExitCode: 137, Signal: 9, Cause: execution.CauseKilled, Truncated: true,
		Error: "which webhook is to be told could not be recorded: " + why.Error(),
	}
	s.writeDown(r)
	s.feed.publish(Event{Type: EventEnded, Execution: r.Execution, Request: r.Request})
}

// takeOver returns what the records add to those of the ledger. It says how executions ended that run according to the ledger,
// which webhooks another server was to tell, and which of its executions run.
func (s *Executor) takeOver(ctx context.Context, records []ledger.Record) []ledger.Record {
	if s.deps.Records == nil {
		return records
	}
	for err := s.deps.Records.Ready(ctx); err != nil && drover.CodeOf(err) != drover.NotLeader; err = s.deps.Records.Ready(ctx) {
		if !clock.Sleep(ctx, s.deps.Clock, time.Second) {
			return records
		}
	}
	seen := make(map[string]bool, len(records))
	for i := range records {
		r := &records[i]
		seen[r.Execution.ID] = true
		switch ended, ok := s.endRecord(r.Execution.ID); {
		case ok && r.Execution.Receipt == nil:
			*r = ended
			s.writeDown(ended)
		case !ok && r.Execution.Receipt != nil && !r.Dropped: // this server was killed before it was recorded
			s.feed.publish(Event{Type: EventEnded, Execution: r.Execution, Webhook: r.Webhook, Request: r.Request})
		}
	}
	for kept := range s.deps.Records.UntoldExecutions() {
		if !seen[kept.Execution.ID] && s.looksAfter(ctx, kept.Execution.AllocID) {
			records = append(records, recordOf(kept))
		}
	}
	return records
}

// looksAfter reports whether this server goes on with what was recorded of a runner's executions. It does if it keeps the
// runner, or if nobody does and this server leads.
func (s *Executor) looksAfter(ctx context.Context, allocID string) bool {
	mine, nobody := s.deps.Keeping.Keeper(allocID)
	return mine || nobody && s.deps.Records.Ready(ctx) == nil
}

// inherit takes up what servers that ended have recorded: webhooks that are to be told, and which executions run.
func (s *Executor) inherit(ctx context.Context) (running map[string]ledger.Record) {
	running = map[string]ledger.Record{}
	if s.deps.Records == nil {
		return running
	}
	for kept := range s.deps.Records.UntoldExecutions() {
		if s.find(kept.Execution.ID) != nil || s.known(kept.Execution.ID) || !s.looksAfter(ctx, kept.Execution.AllocID) {
			continue
		}
		r := recordOf(kept)
		if r.Execution.Receipt == nil {
			running[r.Execution.ID] = r
			continue
		}
		x := s.restore(r)
		s.keep(x)
		s.notify(ctx, x)
	}
	return running
}
