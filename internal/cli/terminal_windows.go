package cli

import (
	"context"
	"time"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
)

// resized calls f with the size after each change, until ctx ends. No signal tells of one here.
func (t *console) resized(ctx context.Context, f func(execution.WindowSize)) {
	last := t.size()
	for clock.Sleep(ctx, clock.Wall{}, 500*time.Millisecond) {
		if now := t.size(); now != last {
			last = now
			f(now)
		}
	}
}
