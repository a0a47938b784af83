package images

import (
	"fmt"
	"time"

	"github.com/moby/moby/api/types/jsonstream"

	"github.com/drover-project/drover/internal/clock"
)

// progressEvery is how often people are told of a pull: a task keeps few events.
const progressEvery = 30 * time.Second

// progress of a pull.
type progress struct {
	clock  clock.Clock
	layers map[string]layer
	told   time.Time
}

// layer is how far one is, in bytes of its compressed form.
type layer struct {
	current, total int64
	done           bool
}

// newProgress begins the pause before the first report now: a short pull tells nothing.
func newProgress(c clock.Clock) *progress {
	return &progress{clock: c, layers: map[string]layer{}, told: c.Now()}
}

// note takes a message of the daemon's; now and then it returns what to say.
func (p *progress) note(m jsonstream.Message) string {
	if m.ID == "" {
		return ""
	}
	// The daemon names a layer by the message's id; messages without one are of the whole pull.
	l := p.layers[m.ID]
	if m.Status == "Downloading" && m.Progress != nil {
		l.current, l.total = m.Progress.Current, m.Progress.Total
	}
	l.done = l.done || m.Status == "Pull complete" || m.Status == "Already exists"
	p.layers[m.ID] = l
	now := p.clock.Now()
	if now.Sub(p.told) < progressEvery {
		return ""
	}
	p.told = now
	return p.String()
}

// String is what a person wants to know. The size of layers that have not begun is not known.
func (p *progress) String() string {
	done, current, total := 0, int64(0), int64(0)
	for _, l := range p.layers {
		if l.done {
			done++
		}
		current, total = current+l.current, total+l.total
	}
	const mega = 1e6
	return fmt.Sprintf("%d of %d layers, %.1f of %.1f MB", done, len(p.layers), float64(current)/mega, float64(total)/mega)
}
