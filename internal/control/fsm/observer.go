package fsm

import "github.com/drover-project/drover"

// Observers tells each of several, in their order.
type Observers []Observer

// Events implements Observer.
func (o Observers) Events(ev drover.Events) {
	for _, x := range o {
		x.Events(ev)
	}
}

// EvaluationsChanged implements Observer.
func (o Observers) EvaluationsChanged(index uint64, evals []*drover.Evaluation) {
	for _, x := range o {
		x.EvaluationsChanged(index, evals)
	}
}

// CapacityFreed implements Observer.
func (o Observers) CapacityFreed(index uint64, nodeID, computedClass string) {
	for _, x := range o {
		x.CapacityFreed(index, nodeID, computedClass)
	}
}

// NodeChanged implements Observer.
func (o Observers) NodeChanged(index uint64, nodeID string, node *drover.Node) {
	for _, x := range o {
		x.NodeChanged(index, nodeID, node)
	}
}

// JobChanged implements Observer.
func (o Observers) JobChanged(index uint64, job drover.NamespacedID, now *drover.Job) {
	for _, x := range o {
		x.JobChanged(index, job, now)
	}
}

// Restored implements RestoreObserver.
func (o Observers) Restored(index uint64) {
	for _, x := range o {
		if r, ok := x.(RestoreObserver); ok {
			r.Restored(index)
		}
	}
}

// QuotaFreed implements QuotaObserver.
func (o Observers) QuotaFreed(index uint64, quota string) {
	for _, x := range o {
		if q, ok := x.(QuotaObserver); ok {
			q.QuotaFreed(index, quota)
		}
	}
}

// OnEvents is an Observer that only wants the events (an event ring's Publish).
type OnEvents func(drover.Events)

// Events implements Observer.
func (f OnEvents) Events(ev drover.Events) { f(ev) }

// EvaluationsChanged implements Observer.
func (OnEvents) EvaluationsChanged(uint64, []*drover.Evaluation) {}

// CapacityFreed implements Observer.
func (OnEvents) CapacityFreed(uint64, string, string) {}

// NodeChanged implements Observer.
func (OnEvents) NodeChanged(uint64, string, *drover.Node) {}

// JobChanged implements Observer.
func (OnEvents) JobChanged(uint64, drover.NamespacedID, *drover.Job) {}
