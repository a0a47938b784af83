package groupnet

import (
	"context"

	"github.com/drover-project/drover/internal/node/cni"
)

// Look finds the networks of CNI that groups can have, and the plugins of those. What it returns must not be changed.
func (n *Networks) Look(ctx context.Context) cni.Found {
	if n.cfg.CNI == nil {
		return cni.Found{}
	}
	return n.cfg.CNI.Look(ctx)
}
