package agent

import (
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/allocdir"
)

const (
	diskPace = 10 * time.Second // at least, between two measurements of an allocation
	// diskShare times the length of a measurement is the shortest pause after it: measuring takes a hundredth of a core
	// at most.
	diskShare = 100
)

// diskMeter measures what allocations take on the disk, when somebody asks, and not too often.
type diskMeter struct {
	clock clock.Clock

	mu     sync.Mutex // guards allocs, and lets one measurement run at a time
	allocs map[string]*diskSample
}

// diskSample is the last measurement of one allocation; it is repeated to all who ask before due.
type diskSample struct {
	usage *drover.AllocDiskUsage
	due   time.Time
}

// usage returns the last measurement, or a new one if that is due; nil if there is no folder.
func (m *diskMeter) usage(allocID string, dir allocdir.Dir) *drover.AllocDiskUsage {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.allocs[allocID]
	begin := m.clock.Now()
	if s != nil && begin.Before(s.due) {
		return s.usage
	}
	usage, err := dir.Usage()
	if err != nil { // it was never made, or is gone
		delete(m.allocs, allocID)
		return nil
	}
	usage.Timestamp = begin.UnixNano()
	took := m.clock.Now().Sub(begin)
	m.allocs[allocID] = &diskSample{usage, begin.Add(max(diskPace, diskShare*took))}
	return usage
}

// forget drops an allocation whose folder is gone.
func (m *diskMeter) forget(allocID string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.allocs, allocID)
}
