package hook

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/usage"
)

// Stats passes a task's samples on, and exists only while somebody wants them. It behaves as users of Nomad's docker
// driver expect: the first sample comes at once and then one an interval, and a late receiver gets no old ones. After an
// error the pause grows until a sample succeeds. It ends when the task is gone or its driver has no statistics.
type Stats struct {
	Meter    driver.Meter
	Interval time.Duration
	Clock    clock.Clock
	Log      *slog.Logger
	// Update gets every sample. The next is not taken before it returned: it should not block.
	Update func(*usage.TaskResourceUsage)
}

// The pauses after errors, doubling.
const (
	statsBackoff    = 5 * time.Second
	statsBackoffMax = 2 * time.Minute
)

// Run collects until ctx ends, at once also while it waits, or until the task can never yield anything.
func (s *Stats) Run(ctx context.Context) {
	timer := s.Clock.NewTimer(0)
	defer timer.Stop()
	for pause := statsBackoff; ; {
		select {
		case <-timer.C():
		case <-ctx.Done():
			return
		}
		sample, err := s.Meter.Usage(ctx)
		switch {
		case err == nil:
			s.Update(sample)
			pause = statsBackoff
			timer.Reset(together(s.Clock.Now(), s.Interval))
		case errors.Is(err, driver.ErrGone), errors.Is(err, driver.ErrNotSupported), ctx.Err() != nil:
			s.Log.Debug("no statistics of this task", "reason", err)
			return
		default:
			if pause == statsBackoff { // once for each time that it begins
				s.Log.Warn("reading a task's statistics failed, trying again", "error", err, "in", pause)
			}
			timer.Reset(pause)
			pause = min(2*pause, statsBackoffMax)
		}
	}
}

// together makes a wait longer by at most a tenth, so that the tasks of a node are sampled in ten lots an interval.
// Waking up for each of a thousand tasks by itself costs more than the sampling.
func together(now time.Time, wait time.Duration) time.Duration {
	const lots = 10
	end := now.Add(wait)
	at := end.Truncate(wait / lots)
	if at.Before(end) {
		at = at.Add(wait / lots)
	}
	return at.Sub(now)
}
