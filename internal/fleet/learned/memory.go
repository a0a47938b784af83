package learned

import (
	"encoding/json"
	"fmt"
	"time"
)

// memoryVersion is raised when a field changes its meaning: what an earlier release learned is then learned anew.
const memoryVersion = 1

// saved is what outlives a restart of the beliefs: what took machines or money to find out. Rates and pauses of calls
// are found out again within seconds.
type saved struct {
	Version  int
	Quotas   map[string]quotaMemory         `json:",omitempty"`
	Cooling  map[string]coolMemory          `json:",omitempty"`
	Boots    map[string]bootMemory          `json:",omitempty"`
	Breakers map[string]breakerMemory       `json:",omitempty"`
	Market   map[string]interruptionsMemory `json:",omitempty"`
}

// quotaMemory is a quota as it is kept over restarts.
type quotaMemory struct {
	Limit   int64
	Fails   int
	RetryAt time.Time
}

// coolMemory is a coolDown as it is kept over restarts.
type coolMemory struct {
	What        string
	Until, Last time.Time
	Fails       int
}

// bootMemory is a histogram of boot times as it is kept over restarts.
type bootMemory struct {
	Counts map[int]float64 // by bucket, without empty ones
	Total  float64
	N      int
}

// breakerMemory is a breaker as it is kept over restarts.
type breakerMemory struct {
	Failed    [10]bool
	N, Opened int
	Until     time.Time
	Why       string
}

// interruptionsMemory is how long spot machines ran, and how many were taken back, as it is kept over restarts.
type interruptionsMemory struct{ Hours, Taken float64 }

// Memory writes down what was learned, for Remember after a restart. The same beliefs give the same text.
func (b *Cloud) Memory() []byte {
	m := saved{
		Version: memoryVersion, Quotas: map[string]quotaMemory{}, Cooling: map[string]coolMemory{}, Boots: map[string]bootMemory{},
		Breakers: map[string]breakerMemory{}, Market: map[string]interruptionsMemory{},
	}
	for k, q := range b.quotas {
		if q.limit != unlimited || q.fails > 0 {
			m.Quotas[k] = quotaMemory{q.limit, q.fails, q.retryAt.UTC()}
		}
	}
	for k, c := range b.cooling {
		m.Cooling[k] = coolMemory{c.what, c.until.UTC(), c.last.UTC(), c.fails}
	}
	for k, h := range b.boots {
		counts := map[int]float64{}
		for i, n := range h.counts {
			if n > 0 {
				counts[i] = n
			}
		}
		m.Boots[k] = bootMemory{counts, h.total, h.n}
	}
	for k, br := range b.breakers {
		if br.n > 0 || br.opened > 0 {
			m.Breakers[k] = breakerMemory{br.failed, br.n, br.opened, br.until.UTC(), br.why}
		}
	}
	for k, i := range b.market {
		m.Market[k] = interruptionsMemory{i.hours, i.taken}
	}
	text, err := json.Marshal(m) // maps are written in the order of their keys
	if err != nil {
		return nil // no number of ours is one that JSON has not
	}
	return text
}

// Remember takes over what Memory wrote; nothing is no memory. Errors: it is of another version, or damaged; then nothing
// is taken over.
func (b *Cloud) Remember(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	var m saved
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("reading what was learned of a cloud: %w", err)
	}
	if m.Version != memoryVersion {
		return fmt.Errorf("what was learned of a cloud is of version %d, this program's is %d", m.Version, memoryVersion) // told, not matched
	}
	for k, q := range m.Quotas {
		b.quotas[k] = &quota{limit: q.Limit, fails: q.Fails, retryAt: q.RetryAt}
	}
	for k, c := range m.Cooling {
		b.cooling[k] = &coolDown{c.What, c.Until, c.Last, c.Fails}
	}
	for k, boot := range m.Boots {
		h := &histogram{total: boot.Total, n: boot.N}
		for i, n := range boot.Counts {
			if i >= 0 && i < len(h.counts) {
				h.counts[i] = n
			}
		}
		b.boots[k] = h
	}
	for k, br := range m.Breakers {
		b.breakers[k] = &breaker{br.Failed, br.N, br.Opened, br.Until, br.Why}
	}
	for k, i := range m.Market {
		b.market[k] = &interruptions{i.Hours, i.Taken}
	}
	return nil
}
