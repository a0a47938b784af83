package office

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
)

// Costs sums the ledger up from a day on (UTC, as 2026-01-31; "" is all) by day, pool, job, namespace or machine. The ledger is written
// every ten seconds, rarer in big fleets, and when a machine goes. After a crash of the server, the time since the last
// entry is charged to what uses the machine then. Errors: Invalid.
func (o *Office) Costs(_ context.Context, from, by string) (fleet.CostReport, error) {
	by = cmp.Or(by, "pool")
	report := fleet.CostReport{From: from, By: by, Lines: []fleet.CostLine{}}
	if _, err := time.Parse(time.DateOnly, from); err != nil && from != "" {
		return report, drover.Errorf(drover.Invalid, "from: must be a day such as 2026-01-31, got %q", from)
	}
	lines := map[string]*fleet.CostLine{}
	add := func(key, poolName string, cost, hours float64) *fleet.CostLine {
		l := lines[key+"\x00"+poolName]
		if l == nil {
			l = &fleet.CostLine{Key: key, Pool: poolName}
			lines[key+"\x00"+poolName] = l
		}
		l.Cost += cost
		l.Hours += hours
		report.Total += cost
		return l
	}
	s := o.deps.State()
	switch by {
	case "day", "pool", "job", "namespace":
		for c := range s.FleetCosts(from) {
			key := map[string]string{"day": c.Day, "pool": c.Pool, "job": jobKey(c), "namespace": namespaceKey(c)}[by]
			add(key, c.Pool, c.Cost, c.Hours)
		}
	case "machine":
		for i := range s.FleetInstances("") {
			if i.CreatedAt.IsZero() || i.CreatedAt.UTC().Format(time.DateOnly) < from {
				continue
			}
			end := i.GoneAt
			if end.IsZero() {
				end = o.deps.Clock.Now()
			}
			add(i.ID, i.Pool, i.Charged, end.Sub(i.CreatedAt).Hours()).Gone = i.State == fleet.InstanceGone
		}
	default:
		return report, drover.Errorf(drover.Invalid, "by: must be day, pool, job, namespace or machine, got %q", by)
	}
	for _, l := range lines {
		report.Lines = append(report.Lines, *l)
	}
	slices.SortFunc(report.Lines, func(a, b fleet.CostLine) int {
		if by == "day" {
			return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Pool, b.Pool))
		}
		return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Pool, b.Pool))
	})
	return report, nil
}

// jobKey is the job under which a cost is shown: its namespace and id, or "idle".
func jobKey(c *fleet.Cost) string {
	if c.Job == fleet.IdleJob {
		return "idle"
	}
	return c.Namespace + "/" + c.Job
}

// namespaceKey is the namespace under which a cost is shown, or "idle".
func namespaceKey(c *fleet.Cost) string {
	if c.Job == fleet.IdleJob {
		return "idle"
	}
	return c.Namespace
}
