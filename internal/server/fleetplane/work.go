package fleetplane

import (
	"cmp"
	"context"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
)

// Work is what runs on the fleet's machines, for Arvados' paths.
type Work struct{ deps Deps }

// Running implements fleet.Work of the face.
func (w Work) Running(context.Context) ([]*drover.Allocation, error) {
	s := w.deps.Store.Snapshot()
	var list []*drover.Allocation
	nodes, _ := w.deps.View.Nodes()
	for _, n := range nodes {
		for a := range s.UnfinishedByNode(n.ID) {
			list = append(list, a)
		}
	}
	return list, nil
}

// StopAllocation implements fleet.Work of the face: as in Arvados, what is killed is not started again.
func (w Work) StopAllocation(ctx context.Context, id, reason string) error {
	a := w.deps.Store.Snapshot().Allocation(id)
	if a == nil {
		return drover.Errorf(drover.NotFound, "container not found: %q", id)
	}
	c := &command.StopAllocs{IDs: []string{id}, Description: cmp.Or(reason, "killed by an operator"), Time: w.deps.Clock.Now().UnixNano()}
	_, _, err := w.deps.Log.Propose(ctx, c)
	return err
}
