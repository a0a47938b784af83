package ledger

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
)

// Use is what a job has of a machine.
type Use struct {
	Job  drover.NamespacedID
	Used drover.Capacity
}

// Meter integrates the use of one machine by samples: what it is told holds until it is told again, so that work that
// begins and ends between two is charged to none. The zero value is a machine that nothing used yet.
type Meter struct {
	at     time.Time
	shares map[drover.NamespacedID]float64 // of the machine, now
	sums   map[drover.NamespacedID]float64 // share seconds since Take
}

// Observe tells what uses the machine from now on.
func (m *Meter) Observe(now time.Time, size drover.Capacity, uses []Use) {
	m.add(now)
	m.shares = nil
	if len(uses) == 0 {
		return
	}
	m.shares = make(map[drover.NamespacedID]float64, len(uses))
	total := 0.0
	for _, u := range uses {
		s := share(u.Used, size)
		m.shares[u.Job] += s
		total += s
	}
	if total > 1 { // it is full, however it was counted
		for k := range m.shares {
			m.shares[k] /= total
		}
	}
}

// share is the biggest part that is used of any resource.
func share(used, size drover.Capacity) float64 {
	part := func(a, b int64) float64 { return float64(max(a, 0)) / float64(max(b, 1)) }
	return min(1, max(part(used.CPU, size.CPU), part(used.MemoryMB, size.MemoryMB)))
}

func (m *Meter) add(now time.Time) {
	if m.at.IsZero() {
		m.at = now
	}
	d := now.Sub(m.at).Seconds()
	m.at = now
	if d <= 0 {
		return
	}
	if m.sums == nil {
		m.sums = map[drover.NamespacedID]float64{}
	}
	idle := 1.0
	for k, s := range m.shares {
		m.sums[k] += d * s
		idle -= s
	}
	m.sums[drover.NamespacedID{}] += d * max(idle, 0)
}

// Take divides a cost by what was used since the last Take, by namespace and job; the rest was idle.
func (m *Meter) Take(now time.Time, pool string, cost float64) []fleet.Cost {
	m.add(now)
	total := 0.0
	for _, s := range m.sums {
		total += s
	}
	day := now.UTC().Format(time.DateOnly)
	if total == 0 {
		if cost == 0 {
			return nil
		}
		return []fleet.Cost{{Day: day, Pool: pool, Cost: cost}}
	}
	var lines []fleet.Cost
	for _, k := range slices.SortedFunc(maps.Keys(m.sums), func(a, b drover.NamespacedID) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.ID, b.ID))
	}) {
		if s := m.sums[k]; s > 0 {
			lines = append(lines, fleet.Cost{Day: day, Pool: pool, Namespace: k.Namespace, Job: k.ID, Cost: cost * s / total, Hours: s / 3600})
		}
	}
	m.sums = nil
	return lines
}

// Total returns what a machine costs from the begin of its billing until now.
func Total(price float64, b fleet.Billing, from, now time.Time) float64 {
	if from.IsZero() || now.Before(from) {
		return 0
	}
	return price * b.Charged(now.Sub(from)).Hours()
}

// Of returns what a machine costs until now, at all prices that it had.
func Of(i *fleet.Instance, now time.Time) float64 {
	if i.RepricedAt.IsZero() || now.Before(i.RepricedAt) {
		return Total(i.Price, i.Billing, i.CreatedAt, now)
	}
	return i.CostBefore + i.Price*max(i.Billing.Charged(now.Sub(i.CreatedAt))-i.Billing.Charged(i.RepricedAt.Sub(i.CreatedAt)), 0).Hours()
}

// Sum adds lines of the same day, pool and job, in a fixed order.
func Sum(lines []fleet.Cost) []fleet.Cost {
	slices.SortStableFunc(lines, func(a, b fleet.Cost) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Job, b.Job))
	})
	var out []fleet.Cost
	for _, l := range lines {
		if n := len(out); n > 0 && out[n-1].Day == l.Day && out[n-1].Pool == l.Pool && out[n-1].Namespace == l.Namespace &&
			out[n-1].Job == l.Job {
			out[n-1].Cost += l.Cost
			out[n-1].Hours += l.Hours
			continue
		}
		out = append(out, l)
	}
	return out
}
