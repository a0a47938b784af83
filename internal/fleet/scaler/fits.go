package scaler

import (
	"github.com/drover-project/drover/fleet"
)

// PricePerPiece returns what a piece of the class costs an hour on the offering, with as many of its like beside it as there
// are and fit. ok is false if none may or can run there.
func PricePerPiece(o *fleet.Offering, d *fleet.DemandClass, pool, template string) (price float64, ok bool) {
	if d.OnDemand && o.Market == fleet.MarketSpot || d.Refused(pool, template, o.Type) != "" {
		return 0, false
	}
	most := max(d.Count, 1)
	for _, c := range d.Constraints {
		if !satisfies(o, c) {
			return 0, false
		}
		if c.Operand == "distinct_hosts" && c.RTarget != "false" {
			most = 1
		}
	}
	n := int64(most)
	for _, r := range [][2]int64{{o.Capacity.CPU, d.Each.CPU}, {o.Capacity.MemoryMB, d.Each.MemoryMB}, {o.Capacity.DiskMB, d.Each.DiskMB}} {
		if r[1] > 0 {
			n = min(n, r[0]/r[1])
		}
	}
	for name, count := range d.Devices {
		if count > 0 {
			n = min(n, int64(o.Devices[name]/count))
		}
	}
	if n < 1 {
		return 0, false
	}
	return o.Price / float64(n), true
}
