package sim

import (
	"time"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
)

// Config is how the cloud behaves. Zero values mean that nothing goes wrong.
type Config struct {
	Seed      uint64
	Owner     string // whose machines List tells of
	Offerings []fleet.Offering
	Caps      provider.Capabilities // Rates are enforced
	Quotas    map[string]int64      // units by group; absent = no limit

	Latency  time.Duration // of a call; half of it to one and a half
	Boot     time.Duration // median from create to agent; default 30 s
	BootWide float64       // sigma of its logarithm; default 0.2

	Stragglers float64 // share of machines that boot ten times as slow
	BootFails  float64 // share of machines whose agent never comes
	Dies       float64 // machines that vanish, per hour
	Errors     float64 // share of calls that fail for no reason, before anything is done
	Lost       float64 // share of calls that are done, but answered with a timeout
	Hangs      float64 // share of calls that are answered after a minute
	Stale      time.Duration
	Partial    float64 // share of lists of which a page is missing, with an error
	Omits      float64 // share of lists that are cut short and say nothing of it
	Zombies    float64 // share of machines that run on after the first Destroy was accepted
	Hidden     float64 // share of machines that lists lack for half an hour, from five minutes after their creation on
	PageSize   int

	Outages []Outage // of the whole cloud

	SoldOut     map[string]bool // offerings that can never be had
	CapacityOn  time.Duration   // mean time for which an offering can be had; 0 = always
	CapacityOff time.Duration
	Interrupts  bool          // take spot machines back at the offering's rate
	Notice      time.Duration // before that; default 2 min
	PriceStep   float64       // size of the hourly random walk of spot prices, relative
}

// Mode is how a cloud is out of order.
type Mode string

// The modes.
const (
	ModeFails Mode = "fails" // every call fails, nothing is done
	ModeHangs Mode = "hangs" // every call is done, and answered with a timeout after a minute
	ModeLies  Mode = "lies"  // lists are empty and say nothing of it
)

// Outage is a time in which the whole cloud is out of order.
type Outage struct {
	From, Until time.Time
	Mode        Mode
}

// mode is how the cloud is out of order now; "" if it is not. The first outage that covers the time counts.
func (c *Config) mode(now time.Time) Mode {
	for _, o := range c.Outages {
		if !now.Before(o.From) && now.Before(o.Until) {
			return o.Mode
		}
	}
	return ""
}

func (c Config) withDefaults() Config {
	if c.Boot == 0 {
		c.Boot = 30 * time.Second
	}
	if c.BootWide == 0 {
		c.BootWide = 0.2
	}
	if c.Notice == 0 {
		c.Notice = 2 * time.Minute
	}
	if c.PageSize == 0 {
		c.PageSize = 1000
	}
	c.Caps.Batch = max(c.Caps.Batch, 1)
	return c
}
