package office

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
)

// Costs sums the ledger up from a day on (UTC, as 2026-01-31; "" is all) by day, pool, job, namespace or machine, or by two of the first
// four, as "day,job". The ledger is written every ten seconds, rarer in big fleets, and when a machine goes. After a crash of the server,
// the time since the last entry is charged to what uses the machine then. Errors: Invalid.
func (o *Office) Costs(_ context.Context, from, by string) (fleet.CostReport, error) {
	by = cmp.Or(by, "pool")
	report := fleet.CostReport{From: from, By: by, Lines: []fleet.CostLine{}}
	if _, err := time.Parse(time.DateOnly, from); err != nil && from != "" {
		return report, drover.Errorf(drover.Invalid, "from: must be a day such as 2026-01-31, got %q", from)
	}
	first, second, two := strings.Cut(by, ",")
	if !slices.Contains(costKeys, first) && by != "machine" || two && (!slices.Contains(costKeys, second) || first == second) {
		return report, drover.Errorf(drover.Invalid,
			"by: must be day, pool, job, namespace or machine, or two of the first four such as day,job, got %q", by)
	}
	type line struct{ key, of, pool string }
	lines := map[line]*fleet.CostLine{}
	add := func(at line, cost, hours float64) *fleet.CostLine {
		l := lines[at]
		if l == nil {
			l = &fleet.CostLine{Key: at.key, Of: at.of, Pool: at.pool}
			lines[at] = l
		}
		l.Cost += cost
		l.Hours += hours
		report.Total += cost
		return l
	}
	s := o.deps.State()
	if by == "machine" {
		for i := range s.FleetInstances("") {
			if i.CreatedAt.IsZero() || i.CreatedAt.UTC().Format(time.DateOnly) < from {
				continue
			}
			end := i.GoneAt
			if end.IsZero() {
				end = o.deps.Clock.Now()
			}
			add(line{key: i.ID, pool: i.Pool}, i.Charged, end.Sub(i.CreatedAt).Hours()).Gone = i.State == fleet.InstanceGone
		}
	} else {
		for c := range s.FleetCosts(from) {
			add(line{costKey(c, first), costKey(c, second), c.Pool}, c.Cost, c.Hours)
		}
	}
	for _, l := range lines {
		report.Lines = append(report.Lines, *l)
	}
	slices.SortFunc(report.Lines, func(a, b fleet.CostLine) int {
		if by == "day" {
			return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Pool, b.Pool))
		}
		days := 0 // they come in their order, with the dearest of each first
		if first == "day" {
			days = cmp.Compare(a.Key, b.Key)
		}
		return cmp.Or(days, cmp.Compare(b.Cost, a.Cost), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Of, b.Of), cmp.Compare(a.Pool, b.Pool))
	})
	return report, nil
}

// costKeys are what the ledger can be summed up by.
var costKeys = []string{"day", "pool", "job", "namespace"}

// costKey is what a cost is shown under, by one of costKeys; "" by none.
func costKey(c *fleet.Cost, by string) string {
	switch by {
	case "day":
		return c.Day
	case "pool":
		return c.Pool
	case "job":
		return jobKey(c)
	case "namespace":
		return namespaceKey(c)
	}
	return ""
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
