package agent

import (
	"context"
	"maps"

	"github.com/drover-project/drover"
)

// Machine adds what the machine has for tasks and lacks to a copy of the node's attributes; node/examine does.
type Machine interface {
	On(ctx context.Context, attributes map[string]string) map[string]string
}

// lookAtMachine reports whether the machine has other parts than before.
func (a *Agent) lookAtMachine(ctx context.Context) bool {
	before := a.node.Load().Attributes
	if a.machine == nil || maps.Equal(before, a.machine.On(ctx, before)) {
		return false
	}
	a.amend(func(n *drover.Node) { n.Attributes = a.machine.On(ctx, n.Attributes) })
	return true
}
