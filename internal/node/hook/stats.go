package hook

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"drover"
	"drover/internal/clock"
	"drover/internal/node/driver"
)

// StatsSource yields samples of a task until ctx ends or it closes the channel.
type StatsSource interface {
	// Stream errors: driver.ErrNotSupported and driver.ErrGone end the collecting; others are tried again.
	Stream(ctx context.Context, interval time.Duration) (<-chan *drover.TaskResourceUsage, error)
}

// Stats passes a task's samples on while somebody wants them. It exists only then: nothing is collected for nobody.
type Stats struct {
	Source   StatsSource
	Interval time.Duration
	Clock    clock.Clock
	Log      *slog.Logger
	// Update gets every sample; it must not block.
	Update func(*drover.TaskResourceUsage)
}

const (
	statsBackoff    = time.Second
	statsBackoffMax = 5 * time.Second
)

// Run collects until ctx ends, at once also while it waits, or until the source can never yield anything.
func (s *Stats) Run(ctx context.Context) {
	for {
		samples, ok := s.open(ctx)
		if !ok {
			return
		}
		if !s.drain(ctx, samples) || !clock.Sleep(ctx, s.Clock, s.Interval) {
			return
		}
	}
}

// open asks the source until it answers; errors back off.
func (s *Stats) open(ctx context.Context) (<-chan *drover.TaskResourceUsage, bool) {
	for wait := statsBackoff; ; wait = min(2*wait, statsBackoffMax) {
		samples, err := s.Source.Stream(ctx, s.Interval)
		switch {
		case err == nil:
			return samples, true
		case errors.Is(err, driver.ErrNotSupported), errors.Is(err, driver.ErrGone):
			s.Log.Debug("no statistics of this task", "reason", err)
			return nil, false
		}
		s.Log.Warn("reading a task's statistics failed, trying again", "error", err, "in", wait)
		if !clock.Sleep(ctx, s.Clock, wait) {
			return nil, false
		}
	}
}

// drain passes samples on; true when the source closed the channel.
func (s *Stats) drain(ctx context.Context, samples <-chan *drover.TaskResourceUsage) bool {
	for {
		select {
		case sample, ok := <-samples:
			if !ok {
				return true
			}
			s.Update(sample)
		case <-ctx.Done():
			return false
		}
	}
}

// MeterSource makes a stream of a driver's Meter, with what users of Nomad's docker driver rely on: the first sample at
// once, then one an interval; one that the reader has not taken is replaced by the next; errors back off and pass; a
// task that is gone ends the stream, and asking for another is an error that stays.
type MeterSource struct {
	Meter driver.Meter
	Clock clock.Clock
}

// The pauses after errors of a meter, doubling.
const (
	meterBackoff    = 5 * time.Second
	meterBackoffMax = 2 * time.Minute
)

// Stream takes the first sample before it returns, so that a task that has none is the caller's to know.
func (m MeterSource) Stream(ctx context.Context, interval time.Duration) (<-chan *drover.TaskResourceUsage, error) {
	first, err := m.Meter.Usage(ctx)
	if final(err) {
		return nil, err
	}
	out := make(chan *drover.TaskResourceUsage, 1)
	if err == nil {
		out <- first
	}
	go m.follow(ctx, interval, err, out) // ends with ctx, or with the task
	return out, nil
}

// together makes a wait longer by a tenth at most, so that the tasks of a node are sampled in ten lots an interval: to
// wake for each of a thousand by itself costs more than to sample it.
func together(now time.Time, wait time.Duration) time.Duration {
	const lots = 10
	end := now.Add(wait)
	at := end.Truncate(wait / lots)
	if at.Before(end) {
		at = at.Add(wait / lots)
	}
	return at.Sub(now)
}

func final(err error) bool {
	return errors.Is(err, driver.ErrGone) || errors.Is(err, driver.ErrNotSupported)
}

// follow is out's only sender: there is room after it took what nobody read.
func (m MeterSource) follow(ctx context.Context, interval time.Duration, err error, out chan *drover.TaskResourceUsage) {
	defer close(out)
	pause := meterBackoff
	for {
		wait := together(m.Clock.Now(), interval)
		if err != nil {
			wait = pause
			pause = min(2*pause, meterBackoffMax)
		}
		if !clock.Sleep(ctx, m.Clock, wait) {
			return
		}
		var sample *drover.TaskResourceUsage
		sample, err = m.Meter.Usage(ctx)
		if final(err) {
			return
		}
		if err != nil {
			continue
		}
		pause = meterBackoff
		select {
		case <-out:
		default:
		}
		out <- sample
	}
}
