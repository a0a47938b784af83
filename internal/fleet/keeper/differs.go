package keeper

import (
	"context"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/fleet/office"
)

// settles is how long the pools have to be what they are before a difference is told: a server that starts catches up first.
const settles = 5 * time.Second

// nameDifferences logs, each time that the pools change, in what those of this server's configuration are not those of the state,
// until ctx ends.
func (k *Keeper) nameDifferences(ctx context.Context) {
	told := ""
	for ctx.Err() == nil {
		index, changed := k.deps.Changes.Pools()
		if !clock.Sleep(ctx, k.deps.Clock, settles) {
			return
		}
		s := k.deps.State()
		if now, _ := k.deps.Changes.Pools(); now != index {
			continue
		}
		if s.FleetIdentity() != nil {
			text := strings.Join(office.Differs(s, k.cfg.Pools), "; ")
			if text != told && text != "" {
				k.deps.Logger.Warn("the fleet's pools are not those of this server's configuration, which changes nothing until "+
					"'drover fleet apply' is run here", "differs", text)
			}
			told = text
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}
