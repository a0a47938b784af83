package scaler

import (
	"fmt"
	"testing"
	"time"

	"drover"
	"drover/internal/fleet/provider"
)

// large is the size of issue 6: 10,000 machines, 10,000 pieces of work in 200 classes, 800 offerings.
func large() Input {
	p := &drover.FleetPolicy{Name: "p", Provider: "sim", Zones: []string{"a", "b", "c", "d"}, Spot: drover.SpotPrefer}
	for n := range 100 {
		cores, ratio := int64(2<<(n%6)), int64(2+2*(n/6%4))
		price := float64(cores)*0.03 + float64(cores*ratio)*0.005 + float64(n)*0.0003
		p.Types = append(p.Types, drover.InstanceType{
			Name: fmt.Sprintf("%c%d.%d", 'a'+n/6, n%6, n), Capacity: drover.Capacity{CPU: cores * 1000, MemoryMB: cores * ratio * 1024, DiskMB: 100000},
			Price: price, SpotPrice: price / 3,
		})
	}
	p.Canonicalize()
	in := Input{
		Now: start, Policy: p, Offerings: p.Offerings(), GroupUsed: map[string]int64{}, Listed: true, Settled: true,
		Beliefs: NewBeliefs(1, provider.Capabilities{Batch: 1000, Idempotent: true}),
	}
	for n := range 200 {
		in.Demand = append(in.Demand, drover.DemandClass{
			Name: fmt.Sprint("class", n), Count: 50, Priority: 50, Since: start.Add(-time.Minute),
			Each: drover.Capacity{CPU: int64(100 + n*37%4000), MemoryMB: int64(128 + n*91%9000), DiskMB: 300},
		})
	}
	for n := range 10000 {
		o := in.Offerings[n%len(in.Offerings)]
		i := &drover.Instance{
			ID: fmt.Sprint(n), Offering: o.Key, Type: o.Type, State: drover.InstanceActive, Behavior: drover.BehaviorRun, Template: p.Template(),
			Capacity: o.Capacity, Price: o.Price, PlannedAt: start.Add(-time.Hour), CreatedAt: start.Add(-time.Hour), ReadyAt: start.Add(-time.Hour), Work: 1 + n%3,
		}
		i.Used = drover.Capacity{CPU: int64(n*7%int(o.Capacity.CPU)) / 100 * 100, MemoryMB: int64(n*13%int(o.Capacity.MemoryMB)) / 128 * 128}
		in.Instances = append(in.Instances, i)
	}
	return in
}

func BenchmarkDecideLarge(b *testing.B) {
	in := large()
	b.ReportAllocs()
	for b.Loop() {
		if out := Decide(in); len(out.Actions) == 0 {
			b.Fatal("nothing was bought")
		}
	}
}

func BenchmarkDecideNothingToDo(b *testing.B) {
	in := large()
	in.Demand = nil
	b.ReportAllocs()
	for b.Loop() {
		Decide(in)
	}
}
