package server

import (
	"time"

	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/node/machine"
	"github.com/drover-project/drover/internal/server/settings"
)

// guard puts what the agent does for its machine between it and control; nil if there is nothing of the kind.
func (a *Agent) guard(n *node, control exchange.Controller) *machine.Guard {
	m := a.cfg.Client.Machine
	if m == nil {
		return nil
	}
	probes := a.metrics.Spans("drover.machine.probe", "Tries of the machine's boot and run probe, by outcome (success, fail)",
		"probe", "outcome")
	return machine.New(settings.Machine(m), machine.Deps{
		Controller: control, Clock: a.deps.Clock, Log: a.deps.Log.With("part", "machine"), Work: func() int { return n.agent.Work() },
		Probed: func(probe string, took time.Duration, ok bool) {
			outcome := "fail"
			if ok {
				outcome = "success"
			}
			probes.WithLabelValues(probe, outcome).Observe(took.Seconds())
		},
	})
}
