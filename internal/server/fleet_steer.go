package server

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/drover-project/drover"
)

// Drain implements pool.Nodes.
func (l fleetLog) Drain(ctx context.Context, node string, deadline time.Time) error {
	n := l.control.store.Snapshot().Node(node)
	if n == nil || n.DrainStrategy != nil && deadline.IsZero() {
		return nil // it is gone, or drains already
	}
	spec := &drover.DrainSpec{IgnoreSystemJobs: true, MoveBatch: true} // nobody who knows the work decided to end it
	if !deadline.IsZero() {
		spec.Deadline = max(deadline.Sub(l.deps.Clock.Now()), time.Second)
	}
	_, err := l.control.intake.DrainNode(ctx, drover.DrainRequest{NodeID: node, Spec: spec, Meta: map[string]string{"by": "fleet"}})
	return err
}

// Cordon implements pool.Nodes.
func (l fleetLog) Cordon(ctx context.Context, node string) error {
	_, err := l.control.intake.SetEligibility(ctx, node, drover.NodeIneligible)
	return err
}

// Undrain implements pool.Nodes.
func (l fleetLog) Undrain(ctx context.Context, node string) error {
	_, err := l.control.intake.DrainNode(ctx, drover.DrainRequest{NodeID: node, MarkEligible: true, Meta: map[string]string{"by": "fleet"}})
	return err
}

// oldest returns the ids of the n earliest times.
func oldest(ids []string, at []time.Time, n int) []string {
	if n <= 0 {
		return nil
	}
	order := make([]int, len(ids))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(at[a].Compare(at[b]), cmp.Compare(ids[a], ids[b])) })
	out := make([]string, n)
	for i := range out {
		out[i] = ids[order[i]]
	}
	return out
}
