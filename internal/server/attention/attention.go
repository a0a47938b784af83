package attention

import (
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/insight"
)

// Judge gathers what package insight judges. However many ask, it does that for a small part of the time.
type Judge struct {
	gather func(ctx context.Context) insight.Facts
	clock  clock.Clock

	turn chan struct{} // holds one: that of who reads or makes the following

	last *insight.Report // the newest one; nil: none yet
	at   time.Time       // when it was made
	took time.Duration   // to make it
}

// New returns a judge of what gather knows.
func New(gather func(ctx context.Context) insight.Facts, c clock.Clock) *Judge {
	return &Judge{gather: gather, clock: c, turn: make(chan struct{}, 1)}
}

// rests is how many times as long as it took to make a judgement it serves all who ask.
const rests = 20

// For is what of the cluster wants attention, as far as the viewer sees it. Errors: Canceled.
func (a *Judge) For(ctx context.Context, v cluster.Viewer) (cluster.Attention, error) {
	select {
	case a.turn <- struct{}{}: // who comes meanwhile has the same judgement
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return cluster.Attention{}, drover.Errorf(drover.Canceled, "waiting for a judgement: %w", context.Cause(ctx))
	}
	if now := a.clock.Now(); a.last == nil || now.Sub(a.at) >= rests*a.took {
		facts := a.gather(ctx)
		if ctx.Err() != nil { // what is unknown by that is not of the cluster
			return cluster.Attention{}, drover.Errorf(drover.Canceled, "judging the cluster: %w", context.Cause(ctx))
		}
		a.last = insight.Judge(facts)
		a.at = a.clock.Now()
		a.took = a.at.Sub(now)
	}
	return a.last.For(v), nil
}
