package term

import (
	"context"
	"time"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
)

// OnResize calls f with the size after each change, until ctx ends. No signal tells of one here.
func (t *Console) OnResize(ctx context.Context, f func(execution.WindowSize)) {
	last := t.Size()
	for clock.Sleep(ctx, clock.Wall{}, 500*time.Millisecond) {
		if now := t.Size(); now != last {
			last = now
			f(now)
		}
	}
}
