package planner

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/command"
)

// Rejections says when a node takes no more work, because plans for it were refused again and again though it seems to have room:
// what its schedulers know of it is wrong.
type Rejections struct {
	Threshold int           // refusals; 0 = never
	Window    time.Duration // within which they are counted
}

const (
	// mostMarked nodes are taken out of service within markedWindow, so that one mistake of the schedulers does not stop a cluster.
	mostMarked   = 5
	markedWindow = 30 * time.Minute
	// mostCounted nodes are counted at a time.
	mostCounted = 1024
)

// rejections counts refusals by node. The planner's run loop owns it.
type rejections struct {
	Rejections
	times  map[string][]time.Time // of each node, the oldest first, at most Threshold
	marked []time.Time            // when nodes were taken out of service
	due    []string               // nodes that are to be
	swept  time.Time              // when those were forgotten last whose refusals are old
}

// note counts a refusal of a node that may take work.
func (r *rejections) note(n *drover.Node, now time.Time) {
	if r.Threshold <= 0 || n == nil || !n.Ready() {
		return
	}
	if _, counted := r.times[n.ID]; !counted && len(r.times) >= mostCounted {
		if now.Sub(r.swept) < r.Window {
			return // so many are refused that none of them is ill by itself
		}
		r.swept = now
		maps.DeleteFunc(r.times, func(_ string, times []time.Time) bool { return now.Sub(times[len(times)-1]) >= r.Window })
	}
	times := append(r.times[n.ID], now)
	if len(times) > r.Threshold {
		times = times[1:]
	}
	r.times[n.ID] = times
	if len(times) < r.Threshold || now.Sub(times[0]) > r.Window {
		return
	}
	for len(r.marked) > 0 && now.Sub(r.marked[0]) > markedWindow {
		r.marked = r.marked[1:]
	}
	if len(r.marked) < mostMarked {
		delete(r.times, n.ID)
		r.marked, r.due = append(r.marked, now), append(r.due, n.ID)
	}
}

// mark takes the nodes out of service that are due.
func (p *Planner) mark(ctx context.Context) {
	due := p.rejected.due
	p.rejected.due = nil
	for _, id := range due {
		now := p.deps.Clock.Now()
		c := &command.SetEligibility{NodeID: id, Eligibility: drover.NodeIneligible, Time: now.UnixNano(), Event: &drover.NodeEvent{
			Subsystem: "Scheduler", Timestamp: now.UTC().Truncate(time.Microsecond),
			Message: fmt.Sprintf("%sineligible for scheduling: %d plans were refused for it within %s (server.plan_rejection_tracker)",
				command.MarkedAs, p.rejected.Threshold, p.rejected.Window),
		}}
		p.deps.Logger.Warn("a node takes no more work: plans for it are refused again and again", "node", id,
			"refused", p.rejected.Threshold, "within", p.rejected.Window)
		clock.Go(p.deps.Clock, func() { // ends when the proposal is answered, at the latest when ctx ends
			if _, _, err := p.deps.Log.Propose(ctx, c); err != nil && ctx.Err() == nil {
				p.deps.Logger.Warn("the node stays eligible", "node", id, "error", err)
			}
		})
	}
}
