package server

import (
	"cmp"
	"context"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
)

// fleetWork is what runs on the fleet's machines, for Arvados' paths.
type fleetWork struct{ *fleetPlane }

// Running implements fleet.Work of the face.
func (f fleetWork) Running(context.Context) ([]*drover.Allocation, error) {
	s := f.control.store.Snapshot()
	var list []*drover.Allocation
	nodes, _ := f.control.view.Nodes()
	for _, n := range nodes {
		for a := range s.UnfinishedByNode(n.ID) {
			list = append(list, a)
		}
	}
	return list, nil
}

// StopAllocation implements fleet.Work of the face: as in Arvados, what is killed is not started again.
func (f fleetWork) StopAllocation(ctx context.Context, id, reason string) error {
	a := f.control.store.Snapshot().Allocation(id)
	if a == nil {
		return drover.Errorf(drover.NotFound, "container not found: %q", id)
	}
	c := &command.StopAllocs{IDs: []string{id}, Description: cmp.Or(reason, "killed by an operator"), Time: f.clock.Now().UnixNano()}
	_, _, err := f.control.log.Propose(ctx, c)
	return err
}
