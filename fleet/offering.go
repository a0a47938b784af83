package fleet

import (
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/constraint"
)

// The markets on which a machine can be bought.
const (
	MarketOnDemand = "on-demand"
	MarketSpot     = "spot"
)

// InstanceType is an instance type that a pool may buy.
type InstanceType struct {
	Name       string            `hcl:"name,label"`
	Capacity   drover.Capacity   `hcl:",squash,required"`    // default 20000
	Price      float64           `hcl:"price"`               // on demand; $ per hour
	SpotPrice  float64           `hcl:"spot_price,optional"` // 0 is not sold as spot; $ per hour; default 0
	Devices    map[string]int    `hcl:"devices,optional"`    // how many of each device, by the name that tasks ask for
	Attributes map[string]string `hcl:"attributes,optional"` // of the node that it becomes: cpu.arch, …
	// types that fail together; default: the name up to the first digit or dot
	Family string `hcl:"family,optional"`
	// types that share a quota; spot has a group of its own; default: the family
	QuotaGroup  string  `hcl:"quota_group,optional"`
	QuotaUnits  int64   `hcl:"quota_units,optional"` // what one takes of the quota; default 1
	Billing     Billing `hcl:",squash"`
	Interrupted float64 `hcl:"interruptions,optional"` // expected interruptions as spot; per hour; default 0
}

// Billing is how time is charged.
type Billing struct {
	Granularity time.Duration `hcl:"billed_by,optional"`       // charged in multiples of it; default 1s
	Minimum     time.Duration `hcl:"billed_at_least,optional"` // charged at least; default 0s
}

// Charged returns the time that is paid for after a run of d.
func (b Billing) Charged(d time.Duration) time.Duration {
	d = max(d, b.Minimum, 0)
	if g := b.Granularity; g > time.Second {
		d = (d + g - 1) / g * g
	}
	return d
}

// Offering is a type in a zone on a market, at a price: what can be bought.
type Offering struct {
	Key         string // provider/type/zone/market: its identity
	Provider    string
	Type        string
	Family      string
	Zone        string
	Market      string
	Capacity    drover.Capacity
	Devices     map[string]int
	Attributes  map[string]string
	Price       float64 // per hour
	Billing     Billing
	QuotaGroup  string
	QuotaUnits  int64
	Interrupted float64 // expected interruptions per hour
}

// OfferingKey names an offering.
func OfferingKey(provider, typ, zone, market string) string {
	return provider + "/" + typ + "/" + zone + "/" + market
}

// Offerings returns what t is sold as in the zones, on demand first.
func (t *InstanceType) Offerings(provider string, zones []string) []Offering {
	var list []Offering
	family := t.Family
	if family == "" {
		family = familyOf(t.Name)
	}
	group := t.QuotaGroup
	if group == "" {
		group = family
	}
	for _, zone := range zones {
		o := Offering{
			Key: OfferingKey(provider, t.Name, zone, MarketOnDemand), Provider: provider, Type: t.Name, Family: family,
			Zone: zone, Market: MarketOnDemand, Capacity: t.Capacity, Devices: t.Devices, Attributes: t.Attributes,
			Price: t.Price, Billing: t.Billing, QuotaGroup: group, QuotaUnits: max(t.QuotaUnits, 1),
		}
		list = append(list, o)
		if t.SpotPrice > 0 {
			o.Key, o.Market = OfferingKey(provider, t.Name, zone, MarketSpot), MarketSpot
			o.Price, o.QuotaGroup, o.Interrupted = t.SpotPrice, group+"-spot", t.Interrupted
			list = append(list, o)
		}
	}
	return list
}

func familyOf(name string) string {
	for i, c := range name {
		if i > 0 && (c == '.' || c == '-' || c == '_' || c >= '0' && c <= '9') {
			return name[:i]
		}
	}
	return name
}

// DemandClass is work that waits and asks for the same: blocked evaluations, what warm pools lack, standby.
type DemandClass struct {
	Name        string // what waits, for people: job/group or environment
	NodePool    string
	Each        drover.Capacity // of one piece of work
	Devices     map[string]int
	Constraints []*constraint.Constraint
	Count       int
	Priority    int
	OnDemand    bool      // never on spot
	Since       time.Time // when the oldest began to wait
	Refusals    []Refusal // machines that can't run it
	Held        string    // why no machine is bought or kept for it; "" = nothing keeps it
}

// Refusal says that machines which a pool makes can't run a class of work, whatever else runs on them: one of them was
// seen, or its configuration says so.
type Refusal struct {
	Pool     string
	Template string // that they are made from
	Type     string // "" = any
	Needs    string // what they lack: driver raw_exec
}

// Refused returns what machines of a type lack that a pool makes from a template; "" if nothing is known.
func (d *DemandClass) Refused(pool, template, typ string) string {
	for i := range d.Refusals {
		r := &d.Refusals[i]
		if r.Pool == pool && r.Template == template && (r.Type == "" || r.Type == typ) {
			return r.Needs
		}
	}
	return ""
}
