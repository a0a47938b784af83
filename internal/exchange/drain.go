package exchange

import (
	"context"

	"github.com/drover-project/drover"
)

// Drains is control as a node asks it for its own drain.
type Drains interface {
	// DrainSelf drains the node, which leaves. Without a spec the node is back: it is eligible again if nobody else drained it since, or
	// made it ineligible before. Errors: as Controller's.
	DrainSelf(ctx context.Context, nodeID string, spec *drover.DrainSpec) error
}
