package leader

import (
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/evalbroker"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/control/trigger"
	"github.com/drover-project/drover/internal/tables"
)

// failedDelay is how long after an evaluation was delivered too often the next is tried.
const failedDelay = time.Minute

// cancelNeedless stores evaluations as cancelled that newer ones made needless.
func (l *Leader) cancelNeedless(ctx context.Context, log Log) {
	var left []*drover.Evaluation // the log refused them
	for {
		wait, needless := clock.Forever, l.broker.Needless()
		if len(left) > 0 {
			wait, needless = retryDelay, nil
		}
		if !clock.Await(ctx, l.deps.Clock, wait, needless) {
			return
		}
		left = append(left, l.broker.TakeNeedless()...)
		c := &command.UpdateEvals{Evals: canceled(l.deps.Store.Snapshot(), left, l.deps.Clock.Now().UnixNano())}
		if len(c.Evals) > 0 {
			if _, _, err := log.Propose(ctx, c); err != nil {
				continue
			}
		}
		left = nil
	}
}

// canceled returns cancelled copies of those that have not ended. now is in unix ns.
func canceled(s *store.Snapshot, evals []*drover.Evaluation, now int64) []*drover.Evaluation {
	var out []*drover.Evaluation
	for _, e := range evals {
		if stored := s.Evaluation(e.ID); stored == nil || stored.Terminal() {
			continue
		}
		c := *e
		c.Status, c.StatusDescription = drover.EvalCanceled, "canceled after more recent eval was processed"
		c.ModifyTime = now
		out = append(out, &c)
	}
	return out
}

// reapFailed marks evaluations failed that were delivered too often, and has their jobs looked at again later.
func (l *Leader) reapFailed(ctx context.Context, log Log) {
	for {
		e, token, err := l.broker.Dequeue(ctx, evalbroker.FailedQueue)
		if err != nil {
			return
		}
		c := &command.UpdateEvals{Evals: undeliverable(e, l.maker())}
		if _, _, err := log.Propose(ctx, c); err != nil {
			if ctx.Err() == nil {
				l.deps.Logger.Warn("cannot mark evaluation failed", "eval", e.ID, "error", err)
			}
			_ = l.broker.Postpone(e.ID, token, retryDelay) // a stale token means that it was delivered again
			continue
		}
		_ = l.broker.Ack(e.ID, token)
	}
}

// undeliverable returns an evaluation that was delivered too often as failed, and the one that follows it.
func undeliverable(e *drover.Evaluation, m trigger.Maker) []*drover.Evaluation {
	follow := follow(e, drover.TriggerFailedFollowUp, m, failedDelay)
	failed := *e
	failed.Status, failed.StatusDescription = drover.EvalFailed, "evaluation reached delivery limit"
	failed.NextEval, failed.ModifyTime = follow.ID, follow.CreateTime
	return []*drover.Evaluation{&failed, follow}
}

// watchSchedulerConfig has everything blocked looked at again when the configuration changed.
func (l *Leader) watchSchedulerConfig(ctx context.Context, _ Log) {
	for clock.Await(ctx, l.deps.Clock, clock.Forever, l.deps.Store.Watch(tables.SchedulerConfig, "")) {
		l.broker.WakeAll()
	}
}
