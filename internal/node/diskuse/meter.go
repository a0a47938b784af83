package diskuse

import (
	"sync"
	"time"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/usage"
)

const (
	meterPace = 10 * time.Second // at least, between two measurements of a folder
	// meterShare times the length of a measurement is the shortest pause after it: measuring takes a hundredth of a core
	// at most.
	meterShare = 100
)

// Meter measures what allocations take on the disk, when somebody asks, and not too often.
type Meter struct {
	clock clock.Clock

	mu     sync.Mutex // guards allocs, and lets one measurement run at a time
	allocs map[string]*sample
}

// sample is the last measurement of one allocation; it is repeated to all who ask before due.
type sample struct {
	usage *usage.AllocDiskUsage
	due   time.Time
}

// NewMeter returns a meter that has measured nothing.
func NewMeter(c clock.Clock) *Meter { return &Meter{clock: c, allocs: map[string]*sample{}} }

// Usage returns the last measurement, or a new one by measure if that is due; nil if there is no folder.
func (m *Meter) Usage(allocID string, measure func() (*usage.AllocDiskUsage, error)) *usage.AllocDiskUsage {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.allocs[allocID]
	begin := m.clock.Now()
	if s != nil && begin.Before(s.due) {
		return s.usage
	}
	usage, err := measure()
	if err != nil { // it was never made, or is gone
		delete(m.allocs, allocID)
		return nil
	}
	usage.Timestamp = begin.UnixNano()
	took := m.clock.Now().Sub(begin)
	m.allocs[allocID] = &sample{usage, begin.Add(max(meterPace, meterShare*took))}
	return usage
}

// Forget drops an allocation whose folder is gone.
func (m *Meter) Forget(allocID string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.allocs, allocID)
}
