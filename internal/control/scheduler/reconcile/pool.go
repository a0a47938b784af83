package reconcile

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/scheduler/draft"
	"github.com/drover-project/drover/internal/optional"
)

const (
	poolRolloutLook    = 2 * time.Second // how soon an unfinished roll-out is looked at again
	poolEarlyFailure   = time.Minute     // a runner that failed within this of its making never became useful
	poolBackoff        = 5 * time.Second // without a reschedule policy
	poolBackoffMaximum = 5 * time.Minute
)

// warm is a pool group's allocations by what they are for the pool.
type warm struct {
	claimed   []*drover.Allocation // handed out: they run on to their end and do not count
	current   []*drover.Allocation // unclaimed, of the current specification
	old       []*drover.Allocation // unclaimed, of another one
	leaving   int                  // stopped, and still there
	failures  []*drover.Allocation // ended early, newer than the newest that worked
	newest    int64                // creation of the newest that worked
	lastEnded time.Time
}

// reconcilePool keeps Pool.Size (and Pool.Demand) unclaimed allocations. MaxRunners bounds them and the claimed ones together. A new
// specification takes over by a quarter of the pool at a time: new ones are placed, and old ones stopped as they run.
func (r *Reconciler) reconcilePool(g *drover.TaskGroup, allocs []*drover.Allocation) *Changes {
	c := &Changes{Group: g}
	u := r.Updates(g.Name)
	w := r.sortPool(g, allocs, u)
	want := g.Pool.Size + g.Pool.Demand
	if g.Pool.MaxRunners > 0 {
		want = max(0, min(want, g.Pool.MaxRunners-len(w.claimed)))
	}
	running := countRunning(w.current)
	w.old = r.stopWarm(w.old, running+len(w.old)-want, u)
	// A pool that shrinks during a roll-out has more new ones on their way than may stand beside the old ones.
	beyond := len(w.current) + len(w.old) - want - ahead(want)
	w.current = r.stopWarm(w.current, max(len(w.current)-want, beyond), u)
	r.updateInPlace(g, w.current, u)
	place := r.refill(g, w, c, want, u)
	if len(w.old) > 0 {
		r.Wake(r.Now.Add(poolRolloutLook), drover.TriggerRollingUpdate, "continues the roll-out of a warm pool")
	}
	place = r.holdBack(g, w, c, place)
	free := newNames(w.claimed, w.current, w.old)
	for range place {
		c.Place = append(c.Place, Placement{Name: drover.AllocationName(r.Job.ID, g.Name, free.take(-1, 0))})
	}
	u.Place += uint64(place)
	u.Ignore += uint64(len(w.claimed)+len(w.current)+len(w.old)) - u.InPlaceUpdate
	c.Kept = slices.Concat(w.claimed, w.current, w.old)
	return c
}

// ahead is how many new runners a roll-out has beyond the size of the pool.
func ahead(want int) int { return max(1, want/4) }

// sortPool sorts the group's allocations and ends those on lost nodes and those to migrate.
func (r *Reconciler) sortPool(g *drover.TaskGroup, allocs []*drover.Allocation, u *drover.DesiredUpdates) *warm {
	w := &warm{}
	for _, a := range allocs {
		switch {
		case a.ClientTerminal():
			r.sortEnded(w, g, a)
		case r.Lost(a.NodeID):
			r.Lose(a)
			u.Stop++
		case a.ServerTerminal():
			w.leaving++
		case optional.Value(a.DesiredTransition.Migrate):
			r.End(a, draft.WhyMigrating)
			u.Migrate++
		case a.Claim != nil:
			w.claimed = append(w.claimed, a)
			w.newest = max(w.newest, a.CreateTime)
		default:
			r.sortWarm(w, g, a)
		}
	}
	w.failures = slices.DeleteFunc(w.failures, func(a *drover.Allocation) bool { return a.CreateTime <= w.newest })
	for _, a := range w.failures {
		if t := failedAt(a); t.After(w.lastEnded) {
			w.lastEnded = t
		}
	}
	return w
}

// sortWarm tells warm runners of the present specification from those that a roll-out has still to replace. One that
// runs proves that the specification works, so failures before it no longer count.
func (r *Reconciler) sortWarm(w *warm, g *drover.TaskGroup, a *drover.Allocation) {
	if r.updateOf(a, g) == updateDestructive {
		w.old = append(w.old, a)
		return
	}
	w.current = append(w.current, a)
	if a.ClientStatus == drover.AllocClientRunning {
		w.newest = max(w.newest, a.CreateTime)
	}
}

// sortEnded tells early failures of the current specification from runners that worked. One that ends early by
// itself, unclaimed, failed too, whatever its exit code was.
func (r *Reconciler) sortEnded(w *warm, g *drover.TaskGroup, a *drover.Allocation) {
	byItself := !a.ServerTerminal() && a.ClientStatus != drover.AllocClientLost
	switch {
	case a.Claim != nil:
		w.newest = max(w.newest, a.CreateTime)
	case !byItself || r.updateOf(a, g) == updateDestructive:
	case failedAt(a).Sub(time.Unix(0, a.CreateTime)) < poolEarlyFailure:
		w.failures = append(w.failures, a)
	default:
		w.newest = max(w.newest, a.CreateTime)
	}
}

// countRunning counts the runners that could be claimed now.
func countRunning(allocs []*drover.Allocation) int {
	n := 0
	for _, a := range allocs {
		if a.ClientStatus == drover.AllocClientRunning {
			n++
		}
	}
	return n
}

// stopWarm stops some unclaimed runners, those not running yet first, then the highest indexes, and returns the rest.
func (r *Reconciler) stopWarm(allocs []*drover.Allocation, number int, u *drover.DesiredUpdates) []*drover.Allocation {
	slices.SortFunc(allocs, func(x, y *drover.Allocation) int {
		return cmp.Or(
			first(x.ClientStatus != drover.AllocClientRunning, y.ClientStatus != drover.AllocClientRunning),
			byIndex(y, x),
		)
	})
	number = min(max(number, 0), len(allocs))
	for _, a := range allocs[:number] {
		r.End(a, draft.WhyNotNeeded)
		u.Stop++
	}
	return allocs[number:]
}

// refill returns how many runners to place: what is missing, and during a roll-out new ones ahead of the old they
// replace. Where MaxRunners leaves no room for that, old ones make it.
func (r *Reconciler) refill(g *drover.TaskGroup, w *warm, c *Changes, want int, u *drover.DesiredUpdates) int {
	missing := max(0, want-len(w.old)-len(w.current))
	starting := len(w.current) - countRunning(w.current)
	place := missing
	if len(w.old) > 0 {
		place = max(place, min(want-len(w.current), ahead(want)-starting))
	}
	if g.Pool.MaxRunners > 0 {
		room := g.Pool.MaxRunners - len(w.claimed) - len(w.old) - len(w.current)
		swap := min(max(place-room, 0), len(w.old))
		w.old = r.stopWarm(w.old, swap, u)
		place = min(place, room+swap)
	}
	// Where there is no room for them, old ones make it: also when the pool never had its size.
	c.Surge = w.old[:max(0, min(len(w.old), place, ahead(want)-starting-w.leaving))]
	return place
}

// holdBack keeps a pool whose runners fail from spinning: the first round of failures is replaced at once, each
// further one after a delay that doubles.
func (r *Reconciler) holdBack(g *drover.TaskGroup, w *warm, c *Changes, place int) int {
	if place == 0 || len(w.failures) == 0 {
		return place
	}
	for _, a := range w.failures {
		c.Avoid = append(c.Avoid, a.NodeID)
	}
	size := max(g.Pool.Size, 1)
	rounds := (len(w.failures) + size - 1) / size
	if rounds < 2 {
		return place
	}
	delay, most := poolBackoff, poolBackoffMaximum
	if p := g.ReschedulePolicy; p != nil {
		delay, most = cmp.Or(optional.Value(p.Delay), delay), cmp.Or(optional.Value(p.MaxDelay), most)
	}
	delay, most = max(delay, brakeDelay), max(most, brakeMaxDelay) // whatever the policy says
	for range min(rounds-2, 32) {
		delay = min(2*delay, most)
	}
	due := w.lastEnded.Add(delay)
	if !due.After(r.Now) {
		return place
	}
	c.Note = fmt.Sprintf("%d wait until %s because the last %d runners failed", place, due.UTC().Format(time.RFC3339), len(w.failures))
	r.Wake(due, drover.TriggerRetryFailedAlloc, "created for delayed replacement of failed warm runners")
	c.Held = place
	return 0
}
