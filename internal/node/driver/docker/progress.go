package docker

import (
	"time"

	"github.com/moby/moby/api/types/jsonstream"
)

// progress of a pull, told in the log now and then.
type progress struct {
	cfg    Config
	image  string
	layers map[string]layer
	told   time.Time
}

type layer struct {
	current, total int64
	done           bool
}

func newProgress(cfg Config, image string) *progress {
	return &progress{cfg: cfg, image: image, layers: map[string]layer{}, told: cfg.Clock.Now()}
}

func (p *progress) note(m jsonstream.Message) {
	if m.ID == "" {
		return
	}
	l := p.layers[m.ID]
	if m.Status == "Downloading" && m.Progress != nil {
		l.current, l.total = m.Progress.Current, m.Progress.Total
	}
	l.done = l.done || m.Status == "Pull complete" || m.Status == "Already exists"
	p.layers[m.ID] = l
	if now := p.cfg.Clock.Now(); now.Sub(p.told) >= progressEvery {
		p.told = now
		done, current, total := p.sum()
		p.cfg.Log.Info("pulling", "image", p.image, "layers", len(p.layers), "done", done, "bytes", current, "of", total)
	}
}

func (p *progress) sum() (done int, current, total int64) {
	for _, l := range p.layers {
		if l.done {
			done++
		}
		current, total = current+l.current, total+l.total
	}
	return done, current, total
}
