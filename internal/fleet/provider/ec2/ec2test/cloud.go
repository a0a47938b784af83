package ec2test

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The credentials that the cloud knows.
const (
	AccessKey = "AKIDEXAMPLE"
	SecretKey = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
	Region    = "eu-test-1"
)

// Cloud is an account in one region.
type Cloud struct {
	URL string

	mu        sync.Mutex // guards everything below
	now       time.Time  // the cloud's own time
	seq       int
	instances []*Instance
	byToken   map[string]*reservation
	faults    map[string][]Fault
	buckets   map[string]*bucket
	Calls     map[string]int // by action

	// Behaviour; set it through With.
	Address  string          // of all machines; default one each in 10.0.0.0/16
	Console  string          // what machines write to it
	Wall     bool            // its time is the real one
	Delay    time.Duration   // until what changed is seen in lists
	PageMost int             // machines a page at most; default 1000
	Types    []string        // that exist
	SoldOut  map[string]bool // "type/zone/market" or "type"
	Quota    map[string]int  // instances by type; -1 = none
	Left     map[string]int  // instances by type that can still be made; no entry = any number
	Sessions map[string]bool // session tokens that are refused as expired
	// SpotPrices are those of all times.
	SpotPrices []SpotPrice
	AskedRole  int
}

// Fault is how one call fails.
type Fault struct {
	Status int    // default 400
	Code   string // "" = the connection is cut
	After  bool   // the call is done first, and its answer lost
	Hang   bool   // nobody answers until the caller gives up
	Retry  int    // Retry-After, in seconds
}

// Instance is a machine.
type Instance struct {
	ID, Type, Zone, Subnet, Image, Market, State, UserData string
	Form                                                   map[string]string // of its RunInstances
	Launched, Ended                                        time.Time
	tags                                                   []tagged
	reservation                                            *reservation
}

// tagged is a tag, and since when it is seen.
type tagged struct {
	key, value string
	at         time.Time
}

// reservation is what one RunInstances made. form is its request, which a repeated client token has to equal.
type reservation struct {
	id, form  string
	instances []*Instance
}

// bucket is the token bucket of one action, as EC2 throttles.
type bucket struct {
	rate, burst, tokens float64
	at                  time.Time
}

// New starts a cloud that ends with the test.
func New(t testing.TB) *Cloud {
	t.Helper()
	c := &Cloud{
		now: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), byToken: map[string]*reservation{}, faults: map[string][]Fault{},
		buckets: map[string]*bucket{}, Calls: map[string]int{}, PageMost: 1000, Types: []string{"m5.large", "c5.large"},
		SoldOut: map[string]bool{}, Quota: map[string]int{}, Left: map[string]int{}, Sessions: map[string]bool{},
	}
	s := httptest.NewServer(c)
	t.Cleanup(s.Close)
	c.URL = s.URL
	return c
}

// With changes the cloud.
func (c *Cloud) With(f func(c *Cloud)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c)
}

// Pass lets the cloud's time pass.
func (c *Cloud) Pass(d time.Duration) { c.With(func(c *Cloud) { c.now = c.now.Add(d) }) }

// Fail lets the next calls of an action fail, one after the other.
func (c *Cloud) Fail(action string, faults ...Fault) {
	c.With(func(c *Cloud) { c.faults[action] = append(c.faults[action], faults...) })
}

// Throttle gives an action a bucket, which is full.
func (c *Cloud) Throttle(action string, perSecond, burst float64) {
	c.With(func(c *Cloud) { c.buckets[action] = &bucket{perSecond, burst, burst, c.now} })
}

// Instances returns copies of all of them.
func (c *Cloud) Instances() (list []Instance) {
	c.With(func(c *Cloud) {
		for _, i := range c.instances {
			list = append(list, *i)
		}
	})
	return list
}

// throttled takes a token of the action's bucket.
func (c *Cloud) throttled(action string) bool {
	b := c.buckets[action]
	if b == nil {
		return false
	}
	b.tokens = min(b.burst, b.tokens+c.now.Sub(b.at).Seconds()*b.rate)
	b.at = c.now
	if b.tokens < 1 {
		return true
	}
	b.tokens--
	return false
}

// find returns the instance, also one that has ended; nil if there never was one.
func (c *Cloud) find(id string) *Instance {
	at := slices.IndexFunc(c.instances, func(i *Instance) bool { return i.ID == id })
	if at < 0 {
		return nil
	}
	return c.instances[at]
}

// index is the launch index: which of its reservation it is.
func (i *Instance) index() int { return slices.Index(i.reservation.instances, i) }

// Tag returns the value that a tag was given last; "" if it never was.
func (i *Instance) Tag(key string) string {
	value := ""
	for _, t := range i.tags {
		if t.key == key {
			value = t.value
		}
	}
	return value
}

// tag returns the value of a tag as it is seen at a time; the last one set counts.
func (i *Instance) tag(key string, at time.Time) (value string, ok bool) {
	for _, t := range i.tags {
		if t.key == key && !t.at.After(at) {
			value, ok = t.value, true
		}
	}
	return value, ok
}

// seen is the state at a time.
func (i *Instance) seen(at time.Time, delay time.Duration) string {
	switch {
	case !i.Ended.IsZero() && !i.Ended.Add(delay).After(at):
		return "terminated"
	case !i.Ended.IsZero() && !i.Ended.After(at):
		return "shutting-down"
	case at.Sub(i.Launched) < delay:
		return "pending"
	}
	return "running"
}

// address is where the machine is.
func (c *Cloud) address(i *Instance) string {
	if c.Address != "" {
		return c.Address
	}
	n := slices.Index(c.instances, i)
	return fmt.Sprintf("10.0.%d.%d", n/250%250, n%250+1)
}

// name returns a new id of EC2's form: a prefix and seventeen hexadecimal digits.
func (c *Cloud) name(prefix string) string {
	c.seq++
	return fmt.Sprintf("%s-%017x", prefix, c.seq)
}

// indexed returns the values of Name.1, Name.2, …
func indexed(form map[string]string, name string) (list []string) {
	for n := 1; ; n++ {
		v, ok := form[name+"."+strconv.Itoa(n)]
		if !ok {
			return list
		}
		list = append(list, v)
	}
}

// pairs returns the tags below a prefix.
func pairs(form map[string]string, prefix string, at time.Time) (tags []tagged) {
	for n := 1; ; n++ {
		key, ok := form[fmt.Sprintf("%sTag.%d.Key", prefix, n)]
		if !ok {
			return tags
		}
		tags = append(tags, tagged{key, form[fmt.Sprintf("%sTag.%d.Value", prefix, n)], at})
	}
}

// marketOf is the market that RunInstances asks for; on demand unless it says spot.
func marketOf(form map[string]string) string {
	if strings.EqualFold(form["InstanceMarketOptions.MarketType"], "spot") {
		return "spot"
	}
	return "on-demand"
}
