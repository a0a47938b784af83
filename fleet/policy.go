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

// Policy says which machines a pool may buy, how many and for how much, and how they are treated.
type Policy struct {
	Name     string // the pool's
	NodePool string // that its machines join; default Name
	// Datacenter of its machines' nodes; default the server's. Only work that may run there is bought for.
	Datacenter string
	Provider   string // a configured provider's name
	Region     string // default the provider's
	Zones      []string
	Types      []InstanceType
	Spot       string // SpotNever (default), SpotPrefer or SpotOnly
	Image      string // the provider's name of the machine image
	UserData   string // given to the machine at boot; may hold ${config}, ${server}, ${token}, ${intent}, ${pool} and ${node_pool}
	SSH        *SSH   // for images without user data
	Tags       map[string]string

	Min      int             // machines to keep
	Max      int             // machines at most; 0 = no limit
	Limits   drover.Capacity // of all machines together; 0 = no limit
	MaxPrice float64         // per machine and hour; 0 = no limit
	Budget   Budget
	Schedule []Schedule
	Standby  []Standby

	Idle            time.Duration // how long a machine may be idle; 0 = as long as it is worth keeping, by WaitCost
	Expire          time.Duration // age at which machines are replaced; 0 = never
	WaitCost        float64       // $ that an hour of waiting of one piece of work is worth; default 1
	BootTimeout     time.Duration // upper bound of the boot deadline; default 15 min
	LostTimeout     time.Duration // silence of an agent after which its machine is replaced; default 10 min
	AdoptGrace      time.Duration // after a restart, how long agents have to call home; default 30 s
	OrphanGrace     time.Duration // how long a machine without a known intent lives; default 10 min
	Disruption      float64       // share of machines that may be replaced at once; default 0.1
	Consolidate     bool          // move movable work off machines that can be saved
	SpotSpread      int           // at most 1/n of a purchase on one spot offering; default 3
	BootProbe       string        // command that must succeed before the machine takes work
	RunProbe        string        // command that must keep succeeding
	PauseCreates    bool
	PauseDestroys   bool
	Retiring        bool          // set by Pool.Effective: nothing new is bought, what is idle goes
	TerminateAtDead time.Duration // dead-man switch: power off when no server answers for so long; default 15 min
}

// What a policy wants of spot machines.
const (
	SpotNever  = ""
	SpotPrefer = "prefer"
	SpotOnly   = "only"
)

// SSH is how machines are reached whose image takes no user data: our program is uploaded and started. The machine
// proves that it is the one that was bought by a key of HostKeys, else by the secret, else by its console.
type SSH struct {
	User       string   // default "root"; others need sudo without a password
	Port       int      // default 22
	Key        string   // path of the private key, on the server
	HostKeys   []string // host keys or their fingerprints (SHA256:…)
	SecretFile string   // file on the machine into which the user data wrote ${secret}
	Config     string   // the agent's configuration; default ${config}
}

// What happens when a budget is spent.
const (
	BudgetQueue    = "queue"    // nothing is bought (default)
	BudgetCritical = "critical" // only for work of CriticalPriority and above
	BudgetAlert    = "alert"    // bought all the same, and said
)

// Budget bounds the cost; 0 = no bound.
type Budget struct {
	PerHour          float64
	PerDay           float64
	AtLimit          string
	CriticalPriority int
}

// Schedule keeps at least Min machines for Duration from each time that Cron names.
type Schedule struct {
	Cron     string // five fields: minute hour day-of-month month day-of-week
	Zone     string // time zone; default UTC
	Duration time.Duration
	Min      int
}

// Standby is room that is kept free for work that has not come yet.
type Standby struct {
	Each  drover.Capacity
	Count int
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

// Template names everything that the policy puts into a machine, so that machines made from something else are found,
// and so that what does not boot in one pool is no reason against it in another.
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
