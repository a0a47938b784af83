package leader

import (
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/telemetry"
)

// Emit tells how much the leader has to do, under Nomad's names. It emits nothing while this server does not lead.
func (l *Leader) Emit(emit telemetry.Emit) {
	if !l.Leading() {
		return
	}
	s := l.broker.Stats()
	emit("nomad.nomad.broker.total_ready", float64(s.Ready))
	emit("nomad.nomad.broker.total_unacked", float64(s.Unacked))
	emit("nomad.nomad.broker.total_pending", float64(s.Pending))
	emit("nomad.nomad.broker.total_waiting", float64(s.Waiting))
	emit("nomad.nomad.broker.total_failed", float64(s.Failed))
	for _, kind := range append([]string{drover.JobTypeCore}, schedulerTypes...) {
		emit("nomad.nomad.broker."+kind+"_ready", float64(s.ByType[kind]))
	}
	emit("nomad.nomad.blocked_evals.total_blocked", float64(s.Blocked))
	emit("nomad.nomad.blocked_evals.total_escaped", float64(s.Escaped))
	emit("nomad.nomad.heartbeat.active", float64(l.heartbeats.count()))
	if plans := l.plans.Load(); plans != nil {
		emit("nomad.nomad.plan.queue_depth", float64(plans.Queued()))
	}
}

// took measures what began at a time.
func (l *Leader) took(name string, began time.Time) {
	l.deps.Samples.Took(name, l.deps.Clock.Now().Sub(began))
}
