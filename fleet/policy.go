package fleet

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover"
)

// Policy is a pool of machines: which may be bought, how many and for how much, and how they are treated.
//
// It is what a pool block of the configuration says: the hcl tags name its keys, and the comments are the reference's.
type Policy struct {
	Name     string   `hcl:"name,label"`
	Provider string   `hcl:"provider"`           // name of a provider block
	NodePool string   `hcl:"node_pool,optional"` // pool of nodes that its machines join; default: the pool's name
	Region   string   `hcl:"region,optional"`    // region of the machines; default: the provider's
	Zones    []string `hcl:"zones,optional"`     // zones that machines may be in; default one, named "default"
	// datacenter of the nodes; only work that may run there is bought for; default: the server's
	Datacenter string         `hcl:"datacenter,optional"`
	Types      []InstanceType `hcl:"type,block"`
	// "prefer" or "only" buys spot machines; default: on-demand machines only
	Spot  string `hcl:"spot,optional"`
	Image string `hcl:"image,optional"` // machine image, as the provider names it
	// given to the machine at boot; may hold ${config}, ${server}, ${token}, ${intent}, ${pool}, ${node_pool} and
	// ${secret}; default: what starts the agent
	UserData string            `hcl:"user_data,optional"`
	SSH      *SSH              `hcl:"ssh,block"`     // for images without user data
	Tags     map[string]string `hcl:"tags,optional"` // tags of the machines

	Min      int             `hcl:"min,optional"`       // machines to keep; default 0
	Max      int             `hcl:"max,optional"`       // machines at most; 0 is no limit; default 0
	Limits   drover.Capacity `hcl:"limits,block"`       // of all machines together; 0 is no limit
	MaxPrice float64         `hcl:"max_price,optional"` // most that a machine may cost; 0 is no limit; $ per hour; default 0
	Budget   Budget          `hcl:"budget,block"`
	Schedule []Schedule      `hcl:"schedule,block"`
	Standby  []Standby       `hcl:"standby,block"`
	// what an hour of waiting of one piece of work is worth; $ per hour; default 1
	WaitCost float64 `hcl:"wait_cost,optional"`

	// how long a machine may be idle; default: as long as it is worth by wait_cost
	Idle        time.Duration `hcl:"idle,optional"`
	Expire      time.Duration `hcl:"expire,optional"`       // age at which machines are replaced; default never
	BootTimeout time.Duration `hcl:"boot_timeout,optional"` // upper bound of a boot; default 15m
	// silence of an agent after which its machine is replaced; default 10m
	LostTimeout time.Duration `hcl:"lost_timeout,optional"`
	// how long agents have to call home after the server's restart; default 30s
	AdoptGrace time.Duration `hcl:"adopt_grace,optional"`
	// how long a machine without a known intent lives; default 10m
	OrphanGrace time.Duration `hcl:"orphan_grace,optional"`
	// how long an idle machine without an answering server lives; default 15m
	TerminateAtDead time.Duration `hcl:"terminate_at_dead,optional"`
	Disruption      float64       `hcl:"disruption,optional"`  // share of machines that may be replaced at once; 0 to 1; default 0.1
	Consolidate     bool          `hcl:"consolidate,optional"` // move movable work off machines that can be saved; default false
	SpotSpread      int           `hcl:"spot_spread,optional"` // at most one nth of a purchase is on one spot offering; default 3
	BootProbe       string        `hcl:"boot_probe,optional"`  // command that must succeed before the machine takes work
	RunProbe        string        `hcl:"run_probe,optional"`   // command that must keep succeeding

	PauseCreates  bool
	PauseDestroys bool
	Retiring      bool // set by Pool.Effective: nothing new is bought, what is idle goes
}

// What a policy wants of spot machines.
const (
	SpotNever  = ""
	SpotPrefer = "prefer"
	SpotOnly   = "only"
)

// SSH is how machines without user data are reached.
//
// Our program is uploaded and started. The machine proves that it is the one that was bought by a key of HostKeys, else by
// the secret, else by its console.
type SSH struct {
	User string `hcl:"user,optional"` // who logs in; others than root need sudo without a password; default root
	Port int    `hcl:"port,optional"` // port; default 22
	Key  string `hcl:"key"`           // private key, on the server; path
	// host keys or fingerprints; default: what the machine writes to its console
	HostKeys   []string `hcl:"host_keys,optional"`
	SecretFile string   `hcl:"secret_file,optional"` // file on the machine into which the user data wrote ${secret}; path
	Config     string   `hcl:"config,optional"`      // configuration of the agent; default ${config}
}

// What happens when a budget is spent.
const (
	BudgetQueue    = "queue"    // nothing is bought (default)
	BudgetCritical = "critical" // only for work of CriticalPriority and above
	BudgetAlert    = "alert"    // bought all the same, and said
)

// Budget bounds the cost.
type Budget struct {
	PerHour float64 `hcl:"per_hour,optional"` // bound of the cost; 0 is no limit; $ per hour; default 0
	PerDay  float64 `hcl:"per_day,optional"`  // bound of the cost; 0 is no limit; $ per day; default 0
	// what happens when it is spent, queue: nothing is bought; critical: only for work of critical_priority; alert: bought,
	// and said; default queue
	AtLimit          string `hcl:"at_limit,optional"`
	CriticalPriority int    `hcl:"critical_priority,optional"` // priority of jobs from which work is critical; default 0
}

// Schedule keeps a minimum at certain times.
type Schedule struct {
	Cron     string        `hcl:"cron"`          // five fields: minute, hour, day of month, month, day of week
	Zone     string        `hcl:"zone,optional"` // time zone; default UTC
	Duration time.Duration `hcl:"duration"`      // how long from each time that cron names
	Min      int           `hcl:"min"`           // machines to keep meanwhile
}

// Standby is room that is kept free for work that has not come yet.
type Standby struct {
	Each  drover.Capacity `hcl:",squash"` // of each piece; default 0
	Count int             `hcl:"count"`   // pieces of room that are kept free
}

// Canonicalize fills defaults in.
func (p *Policy) Canonicalize() {
	if p.NodePool == "" {
		p.NodePool = p.Name
	}
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&p.BootTimeout, 15*time.Minute)
	def(&p.LostTimeout, 10*time.Minute)
	def(&p.AdoptGrace, 30*time.Second)
	def(&p.OrphanGrace, 10*time.Minute)
	def(&p.TerminateAtDead, 15*time.Minute)
	if p.WaitCost == 0 {
		p.WaitCost = 1
	}
	if p.Disruption == 0 {
		p.Disruption = 0.1
	}
	if p.SpotSpread == 0 {
		p.SpotSpread = 3
	}
	if p.Budget.AtLimit == "" {
		p.Budget.AtLimit = BudgetQueue
	}
	if p.SSH != nil && p.SSH.Port == 0 {
		p.SSH.Port = 22
	}
	for i := range p.Types {
		if p.Types[i].Capacity.DiskMB == 0 {
			p.Types[i].Capacity.DiskMB = 20_000
		}
	}
}

// Template names everything that the policy puts into a machine. So machines made from something else are found, and what does
// not boot in one pool is no reason against it in another.
func (p *Policy) Template() string {
	parts := []string{
		p.Name, p.NodePool, p.Datacenter, p.Provider, p.Region, p.Image, p.UserData, p.BootProbe, p.RunProbe,
		p.TerminateAtDead.String(), strconv.FormatBool(p.Spot != SpotNever), // machines of the spot market watch for notices
	}
	if s := p.SSH; s != nil {
		parts = append(parts, s.User, strconv.Itoa(s.Port), s.SecretFile, s.Config, strings.Join(s.HostKeys, "\x00"))
	}
	for _, key := range slices.Sorted(maps.Keys(p.Tags)) {
		parts = append(parts, key, p.Tags[key])
	}
	return "2-" + digest(parts...)
}

// FormerTemplate is what releases before Template's version 2 wrote onto machines of this policy.
func (p *Policy) FormerTemplate() string { return digest(p.Image, p.UserData) }

func digest(parts ...string) string {
	h := fnv.New64a() // not for secrets
	for _, s := range parts {
		_, _ = h.Write([]byte(s + "\x00")) // a hash takes everything
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// Offerings returns everything that the policy may buy, in its own order, at the prices that it names.
func (p *Policy) Offerings() []Offering { return p.OfferingsAt(nil) }

// OfferingsAt is Offerings at these prices, by key; what is not in them costs what the policy says.
func (p *Policy) OfferingsAt(prices map[string]float64) []Offering {
	list := p.Wanted()
	for i := range list {
		if price, told := prices[list[i].Key]; told {
			list[i].Price = price
		}
	}
	return slices.DeleteFunc(list, func(o Offering) bool { return p.MaxPrice > 0 && o.Price > p.MaxPrice })
}

// Wanted is Offerings with those that cost more than MaxPrice: their price may fall.
func (p *Policy) Wanted() []Offering {
	var list []Offering
	for i := range p.Types {
		for _, o := range p.Types[i].Offerings(p.Provider, p.Zones) {
			if o.Market == MarketSpot && p.Spot != SpotNever || o.Market == MarketOnDemand && p.Spot != SpotOnly {
				list = append(list, o)
			}
		}
	}
	return list
}

// MinAt returns how many machines the policy keeps at a time: Min, or what a running schedule says.
func (p *Policy) MinAt(now time.Time) int {
	n := p.Min
	for i := range p.Schedule {
		if p.Schedule[i].ActiveAt(now) {
			n = max(n, p.Schedule[i].Min)
		}
	}
	return n
}
