package scheduler

import (
	"fmt"
	"time"

	"github.com/drover-project/drover"
)

// The brake makes storms impossible whatever a job's policies say, and whatever faults the reconciler has: once more
// allocations of a job than it has places (or a few) ended within a second of their start, further ones begin after a
// delay that doubles with each such wave. So of n places at most n+quickFree begin at once, and then as many a delay.
const (
	quickFree     = 5           // ends at once that are nothing special
	brakeDelay    = time.Second // after the first wave
	brakeMaxDelay = time.Minute
)

// braked returns until when the job is to wait, given how its allocations ended; zero if it need not.
func braked(q drover.QuickEnds, places int) time.Time {
	free := max(places, quickFree)
	if q.Count <= free {
		return time.Time{}
	}
	waves := min((q.Count-1)/free-1, 6) // 2^6 s is above the maximum
	return time.Unix(0, q.Last).Add(min(brakeDelay<<waves, brakeMaxDelay))
}

// brake puts off what a group of a job would begin while its allocations end at once. What a person asked for by stopping
// an allocation is done. Pools look after themselves (holdBack).
func (r *run) brake(c *changes) {
	if c.group.Pool != nil {
		return
	}
	if len(c.place)+len(c.destructive) == 0 || r.in.Eval.TriggeredBy == drover.TriggerAllocStop {
		return
	}
	q := r.snapshot.QuickEnds(r.job.Namespace, r.job.ID)
	until := braked(q, places(r.job))
	if !until.After(r.now) {
		return
	}
	r.slowed = fmt.Sprintf("slowed: %d allocations of the job ended within a second of their start; the next begin at %s",
		q.Count, until.UTC().Format(time.RFC3339))
	followUp := r.wake(until, drover.TriggerRetryFailedAlloc, r.slowed)
	for _, p := range c.place {
		if p.previous != nil && p.reschedule {
			r.await(p.previous, followUp)
		}
	}
	c.held += len(c.place)
	c.place, c.destructive, c.surge, c.note = nil, nil, nil, r.slowed
}

// places is how many allocations the job has at most when nothing changes.
func places(j *drover.Job) int {
	n := 0
	for _, g := range j.TaskGroups {
		n += desiredCount(g)
		if g.Update != nil {
			n += g.Update.Canary
		}
	}
	return n
}
