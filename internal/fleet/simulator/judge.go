package simulator

import (
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/provider/sim"
	"github.com/drover-project/drover/internal/fleet/scaler"
)

// Load is work on a cloud by which rules are judged.
type Load struct {
	Name   string
	Policy func() *fleet.Policy
	Boot   time.Duration
	Faults float64
	Work   func(seed uint64, length time.Duration) Workload
}

// Loads are those of the comparison with other products' rules.
func Loads() []Load {
	const boot, run = 45 * time.Second, 10 * time.Minute
	daily := func(perHour float64) func(uint64, time.Duration) Workload {
		return func(seed uint64, length time.Duration) Workload { return Daily(seed, length, Mixed(run), perHour) }
	}
	heavy := func(seed uint64, length time.Duration) Workload {
		mix := Mixed(run)
		mix.Heavy = 1.5
		return Poisson(seed, length, mix, 600)
	}
	return []Load{
		{"daily 100/h, small and big", smallAndBig, boot, 0, daily(100)},
		{"daily 600/h, small and big", smallAndBig, boot, 0, daily(600)},
		{"daily 2000/h, small and big", smallAndBig, boot, 0, daily(2000)},
		{"daily 100/h, three c5", threeC5, boot, 0, daily(100)},
		{"daily 600/h, three c5", threeC5, boot, 0, daily(600)},
		{"daily 2000/h, three c5", threeC5, boot, 0, daily(2000)},
		{"daily 2000/h, spot preferred", spotC5, boot, 0, daily(2000)},
		{"bursty 2000/h", threeC5, boot, 0, func(seed uint64, length time.Duration) Workload { return Bursty(seed, length, Mixed(run), 2000) }},
		{"heavy-tailed 600/h, faults 0.1", threeC5, boot, 0.1, heavy},
		{"1 min tasks, 3 min boots, 600/h", threeC5, 3 * time.Minute, 0, func(seed uint64, length time.Duration) Workload {
			return Daily(seed, length, Mixed(time.Minute), 600)
		}},
	}
}

// smallAndBig has a small type and a big one that is a tenth cheaper a core: the big one pays only if it is filled.
func smallAndBig() *fleet.Policy {
	return policyOf("", size("small", 2, 0.05), size("big", 8, 0.18))
}

// threeC5 has three types of one price a core: only how full they get decides between them.
func threeC5() *fleet.Policy {
	return policyOf("", size("c5.large", 2, 0.1), size("c5.xlarge", 4, 0.2), size("c5.2xlarge", 8, 0.4))
}

// spotC5 is threeC5 on the spot market, where machines are taken back.
func spotC5() *fleet.Policy {
	return policyOf(fleet.SpotPrefer, size("c5.large", 2, 0.1), size("c5.xlarge", 4, 0.2), size("c5.2xlarge", 8, 0.4))
}

// policyOf is a pool of these types in three zones, bought on the market that spot says; "" = the default.
func policyOf(spot string, types ...fleet.InstanceType) *fleet.Policy {
	p := &fleet.Policy{Name: "p", Provider: "sim", Zones: []string{"a", "b", "c"}, Image: "img", Spot: spot, Types: types}
	p.Canonicalize()
	return p
}

// size is a type of so many cores of 1 GHz with 2 GB each, at a price an hour; on the spot market it costs a third.
func size(name string, cores int64, price float64) fleet.InstanceType {
	return fleet.InstanceType{
		Name: name, Capacity: drover.Capacity{CPU: cores * 1000, MemoryMB: cores * 2048, DiskMB: 50000}, Price: price, SpotPrice: price / 3,
		Interrupted: 0.05,
	}
}

// Rules are whose decisions are judged.
type Rules struct {
	Name   string
	Idle   time.Duration // of the policy
	Decide func() func(scaler.Input) scaler.Output
}

// Peers are other products' rules, and ours with a fixed time of idling.
func Peers() []Rules {
	of := func(b func() *Baseline) func() func(scaler.Input) scaler.Output {
		return func() func(scaler.Input) scaler.Output { return b().Decide }
	}
	return []Rules{
		{Name: "arvados", Decide: of(Arvados)},
		{Name: "cluster-autoscaler", Decide: of(ClusterAutoscaler)},
		{Name: "karpenter", Decide: of(Karpenter)},
		{Name: "idle = 1m", Idle: time.Minute},
	}
}

// On returns a run by the rules: of the same work, on the same cloud.
func (r *Rules) On(cfg Config) Config {
	p := *cfg.Policy
	p.Idle = r.Idle
	cfg.Policy = &p
	if r.Decide != nil {
		cfg.Decide = r.Decide()
	}
	return cfg
}

// Judge runs a load by the rules; nil are ours.
func (l *Load) Judge(seed uint64, length time.Duration, rules *Rules, waitCost float64) (Result, error) {
	p := l.Policy()
	p.WaitCost = waitCost
	cfg := Config{Seed: seed, Policy: p, Work: l.Work(seed, length), Linger: 3 * time.Hour, Cloud: sim.Config{
		Latency: 300 * time.Millisecond, Boot: l.Boot, BootFails: l.Faults, Errors: l.Faults, Lost: l.Faults / 2, Stragglers: 0.01,
		Interrupts: true,
		Caps: provider.Capabilities{
			Idempotent: true, Batch: 50, Visible: 10 * time.Second, Interrupts: true,
			Rates: StandardCloud().Caps.Rates,
		},
	}}
	if rules != nil {
		cfg = rules.On(cfg)
	}
	return Run(cfg)
}

// WaitCosts are what an hour of waiting is worth when rules are judged.
var WaitCosts = [3]float64{0.05, 1, 10}

// Verdict is what rules came to on a load, on average over seeds.
type Verdict struct {
	Total, Money float64
	Wait         time.Duration // mean
	Bought       int
	Again        int
}

// add includes one run of so many seeds: money and waiting become means, numbers of machines are totals.
func (v *Verdict) add(r *Result, waitCost float64, seeds int) {
	n := float64(seeds)
	v.Total, v.Money = v.Total+r.Total(waitCost)/n, v.Money+r.Cost/n
	v.Wait += r.MeanWait() / time.Duration(seeds)
	v.Bought, v.Again = v.Bought+r.Created, v.Again+r.Again
}

// Comparison is a load by our rules and by the peers', at each of WaitCosts.
type Comparison struct {
	Ours  [len(WaitCosts)]Verdict
	Peers [][len(WaitCosts)]Verdict // in the order of Peers
}

// Best returns the least total of a peer at the kth of WaitCosts.
func (c *Comparison) Best(k int) float64 {
	best := c.Peers[0][k].Total
	for p := range c.Peers {
		best = min(best, c.Peers[p][k].Total)
	}
	return best
}

// Compare judges a load with so many seeds from first on. Errors: a breach of an invariant.
func (l *Load) Compare(first uint64, seeds int, length time.Duration) (c Comparison, err error) {
	peers := Peers()
	c.Peers = make([][len(WaitCosts)]Verdict, len(peers))
	for seed := first; seed < first+uint64(seeds); seed++ {
		for k, w := range WaitCosts {
			res, err := l.Judge(seed, length, nil, w)
			if err != nil {
				return c, err
			}
			c.Ours[k].add(&res, w, seeds)
		}
		for p := range peers {
			for k, w := range WaitCosts {
				if k > 0 && peers[p].Decide != nil {
					break // what other products' rules decide does not depend on it
				}
				res, err := l.Judge(seed, length, &peers[p], w)
				if err != nil {
					return c, err
				}
				for n, w := range WaitCosts {
					if peers[p].Decide != nil || n == k {
						c.Peers[p][n].add(&res, w, seeds)
					}
				}
			}
		}
	}
	return c, nil
}
