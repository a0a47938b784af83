package reconcile

import (
	"fmt"
	"time"

	"github.com/drover-project/drover"
)

// The brake makes storms impossible whatever a job's policies say, and whatever faults the reconciler has. It begins once more
// allocations of a job than it has places (or a few) ended within a second of their start. Further ones begin after a delay
// that doubles with each such wave. So of n places at most n+quickFree begin at once, and then as many a delay.
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

// Brake puts off what a group of a job would begin while its allocations end at once. What a person asked for by stopping
// an allocation is done. Pools look after themselves (holdBack).
func (r *Reconciler) Brake(c *Changes) {
	if c.Group.Pool != nil {
		return
	}
	if len(c.Place)+len(c.Destructive) == 0 || r.Eval.TriggeredBy == drover.TriggerAllocStop {
		return
	}
	q := r.state.QuickEnds(r.Job.Namespace, r.Job.ID)
	until := braked(q, places(r.Job))
	if !until.After(r.Now) {
		return
	}
	r.Slowed = fmt.Sprintf("slowed: %d allocations of the job ended within a second of their start; the next begin at %s",
		q.Count, until.UTC().Format(time.RFC3339))
	followUp := r.Wake(until, drover.TriggerRetryFailedAlloc, r.Slowed)
	for _, p := range c.Place {
		if p.Previous != nil && p.Rescheduled {
			r.Await(p.Previous, followUp)
		}
	}
	c.Held += len(c.Place)
	c.Place, c.Destructive, c.Surge = nil, nil, nil
}

// places is how many allocations the job has at most when nothing changes.
func places(j *drover.Job) int {
	n := 0
	for _, g := range j.TaskGroups {
		n += g.DesiredCount()
		if g.Update != nil {
			n += g.Update.Canary
		}
	}
	return n
}
