package simulator

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/pool"
)

// breach is the panic of a broken invariant; Run returns it as an error.
type breach string

// must ends the run with a breach unless ok.
func (s *Sim) must(ok bool, format string, args ...any) {
	if !ok {
		panic(breach(fmt.Sprintf(format, args...)))
	}
}

// integral is the cost by our own counting.
type integral struct {
	cost    float64
	seconds float64 // of machines
	peak    int
}

// integrate adds a time during which the number of machines and their price did not change.
func (i *integral) integrate(ns int64, machines int, perHour float64) {
	i.cost += perHour * float64(ns) / 3.6e12
	i.seconds += float64(machines) * float64(ns) / 1e9
	i.peak = max(i.peak, machines)
}

// thrash counts machines that are bought within ten minutes after an equal one was returned as not needed.
type thrash struct {
	gone  map[string][]int64 // by type: when
	again int
}

// destroyed notes a machine that was returned for lack of work. Other ends, such as an interruption, are no thrashing
// when a machine is bought again.
func (t *thrash) destroyed(now int64, e fleet.Audit) {
	if e.Why == "drained" || e.Why == "idle" || strings.HasPrefix(e.Reason, "destroyed: drained: idle") {
		typ := typeOf(e.Offering)
		t.gone[typ] = append(t.gone[typ], now)
	}
}

// created counts how many of n new machines replace equal ones of the last ten minutes. Each returned machine counts
// once.
func (t *thrash) created(now int64, offering string, n int) {
	const window = 10 * 60 * 1e9
	typ := typeOf(offering)
	list := t.gone[typ]
	for len(list) > 0 && now-list[0] > window {
		list = list[1:]
	}
	k := min(n, len(list))
	t.again += k
	t.gone[typ] = list[k:]
}

// typeOf returns the instance type in an offering's key of four parts; zone and market do not matter for thrashing.
func typeOf(offering string) string {
	if f := strings.Split(offering, "/"); len(f) == 4 {
		return f[1]
	}
	return offering
}

// checkDestroy runs before every destroy: no busy and no held machine goes, unless the cloud takes it anyway.
func (s *Sim) checkDestroy(e *pool.Effect) {
	n := s.byCloud[e.ProviderID]
	i, known := s.core.Instance(e.Instance)
	s.must(!known || i.Behavior != fleet.BehaviorHold, "held machine %s is destroyed", e.Instance)
	if n != nil && n.up && !n.taken {
		s.must(len(n.tasks) == 0, "busy machine %s is destroyed: %s, %s", e.Instance, i.Why, i.Reason)
	}
}

// checkCreate runs after every create: what the policy bounds is bounded.
func (s *Sim) checkCreate() {
	machines, perHour := s.cloud.Running()
	pol := s.cfg.Policy
	// Nobody can know of a machine that lists lack while its agent is silent, or that was made twice.
	sure := s.cfg.Cloud.Caps.Idempotent && s.cfg.Cloud.Hidden == 0
	s.must(pol.Max == 0 || machines <= pol.Max || !sure, "%d machines, the maximum is %d", machines, pol.Max)
	s.must(pol.Budget.PerHour == 0 || perHour <= pol.Budget.PerHour+1e-6 || !sure, "%.4g an hour, the budget is %.4g", perHour,
		pol.Budget.PerHour)
	for group, limit := range s.cfg.Cloud.Quotas {
		s.must(s.cloud.Used(group) <= limit, "quota of %s is exceeded", group)
	}
}

// check runs every so many events: counts agree.
func (s *Sim) check() {
	waits := 0
	for i := range s.waiting {
		waits += s.waiting[i].len()
	}
	s.must(waits == s.waits, "%d tasks wait, %d are counted", waits, s.waits)
	s.must(s.done+s.running+s.waits <= len(s.tasks), "more tasks than came")
}

// checkEnd runs at the end: all work is done once, no machine is left, and the bill is right.
func (s *Sim) checkEnd() {
	s.decide() // takes the last effects
	machines, _ := s.cloud.Running()
	s.must(s.done == len(s.tasks), "%d of %d tasks are done", s.done, len(s.tasks))
	s.must(machines == 0, "%d machines leaked: %s", machines, s.core)
	s.must(len(s.intents) == 0, "%d intents are left", len(s.intents))
	exact := true
	for _, t := range s.cfg.Policy.Types {
		exact = exact && t.Billing.Granularity <= 1 && t.Billing.Minimum == 0
	}
	bill := s.cloud.Cost(s.time())
	s.must(!exact || math.Abs(bill-s.integral.cost) <= 1e-6*max(bill, 1), "the cloud bills %.6f, we count %.6f", bill, s.integral.cost)
}

// sortedKeys returns a map's keys in order. Ranging over a map directly would make runs of the same seed differ.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
