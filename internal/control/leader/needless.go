package leader

import (
	"context"
	"time"

	"drover"
	"drover/internal/control/command"
	"drover/internal/control/evalbroker"
	"drover/internal/control/store"
)

// failedDelay is how long after an evaluation was delivered too often the next is tried.
const failedDelay = time.Minute

// cancelNeedless stores evaluations as cancelled that newer ones made needless.
func (l *Leader) cancelNeedless(ctx context.Context, log Log) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.broker.Needless():
		}
		s := l.deps.Store.Snapshot()
		c := &command.UpdateEvals{}
		for _, e := range l.broker.TakeNeedless() {
			if stored := s.Evaluation(e.ID); stored == nil || stored.Terminal() {
				continue
			}
			canceled := *e
			canceled.Status, canceled.StatusDescription = drover.EvalCanceled, "canceled after more recent eval was processed"
			canceled.ModifyTime = l.deps.Clock.Now().UnixNano()
			c.Evals = append(c.Evals, &canceled)
		}
		if len(c.Evals) == 0 {
			continue
		}
		if _, _, err := log.Propose(ctx, c); err != nil && ctx.Err() == nil {
			l.deps.Logger.Warn("cannot cancel evaluations", "count", len(c.Evals), "error", err) // the next leader does
		}
	}
}

// reapFailed marks evaluations failed that were delivered too often, and has their jobs looked at again later.
func (l *Leader) reapFailed(ctx context.Context, log Log) {
	for {
		e, token, err := l.broker.Dequeue(ctx, evalbroker.FailedQueue)
		if err != nil {
			return
		}
		follow := l.follow(e, drover.TriggerFailedFollowUp, l.deps.Clock.Now().Add(failedDelay))
		failed := *e
		failed.Status, failed.StatusDescription = drover.EvalFailed, "evaluation reached delivery limit"
		failed.NextEval, failed.ModifyTime = follow.ID, follow.CreateTime
		c := &command.UpdateEvals{Evals: []*drover.Evaluation{&failed, follow}}
		if _, _, err := log.Propose(ctx, c); err != nil {
			if ctx.Err() == nil {
				l.deps.Logger.Warn("cannot mark evaluation failed", "eval", e.ID, "error", err)
			}
			_ = l.broker.Nack(e.ID, token) // a stale token means that it was delivered again
			continue
		}
		_ = l.broker.Ack(e.ID, token)
	}
}

// watchSchedulerConfig has everything blocked looked at again when the configuration changed.
func (l *Leader) watchSchedulerConfig(ctx context.Context, _ Log) {
	for {
		changed := l.deps.Store.Watch(store.TableSchedulerConfig, "")
		select {
		case <-ctx.Done():
			return
		case <-changed:
			l.broker.WakeAll()
		}
	}
}
