package eventstream

import (
	"strconv"
	"sync"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/invariant"
	"github.com/drover-project/drover/internal/wake"
)

// DefaultMaxBytes bounds a buffer whose Config says nothing.
const DefaultMaxBytes = 64 << 20

// Config of a Buffer.
type Config struct {
	MaxBytes   int64 // about what the kept events may hold in memory; default DefaultMaxBytes
	MaxEntries int   // entries of the log whose events are kept; 0 is no limit
}

// Buffer keeps the latest entries' events. It observes an FSM. All methods may be called by several goroutines.
type Buffer struct {
	max  int64
	most int // entries; 0 is no limit

	mu    sync.Mutex
	items []item // guarded by mu: by index
	first uint64 // guarded by mu: the number of items[0], counted since the start
	bytes int64  // guarded by mu
	floor uint64 // guarded by mu: every event with a greater index is kept

	more wake.Broadcast // at each publication
}

type item struct {
	events drover.Events
	bytes  int64
}

// New returns an empty buffer.
func New(cfg Config) *Buffer {
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = DefaultMaxBytes
	}
	return &Buffer{max: cfg.MaxBytes, most: cfg.MaxEntries}
}

// Events publishes what one entry changed. It implements fsm.Observer and does not block. What is published must not
// change any more. An index that is not greater than the last one's is ignored.
func (b *Buffer) Events(e drover.Events) {
	size := sizeOf(e)
	b.mu.Lock()
	defer b.mu.Unlock()
	if newest := b.newest(); e.Index <= newest {
		invariant.Breach(invariant.EventsIncrease, strconv.FormatUint(e.Index, 10), "events of this index are published after those of %d",
			newest)
		return
	}
	b.items = append(b.items, item{e, size})
	b.bytes += size
	for (b.bytes > b.max || b.most > 0 && len(b.items) > b.most) && len(b.items) > 1 {
		b.floor = b.items[0].events.Index
		b.bytes -= b.items[0].bytes
		b.items[0] = item{}
		b.items = b.items[1:]
		b.first++
	}
	b.more.Send()
}

// Restored implements fsm.RestoreObserver: the state jumped to index, what happened up to there is not known here.
func (b *Buffer) Restored(index uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.first += uint64(len(b.items)) + 1 // all subscribers missed something
	b.items, b.bytes, b.floor = nil, 0, index
	b.more.Send()
}

// newest returns the index up to which everything was published; b.mu is held.
func (b *Buffer) newest() uint64 {
	if n := len(b.items); n > 0 {
		return b.items[n-1].events.Index
	}
	return b.floor
}

// Stats is what a buffer holds.
type Stats struct {
	Entries int
	Bytes   int64
	Oldest  uint64 // index of the oldest entry kept; 0 = none
	Floor   uint64 // a subscription with an index up to this one is refused
}

// Stats returns what the buffer holds.
func (b *Buffer) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := Stats{Entries: len(b.items), Bytes: b.bytes, Floor: b.floor}
	if len(b.items) > 0 {
		s.Oldest = b.items[0].events.Index
	}
	return s
}

// EvaluationsChanged implements fsm.Observer.
func (*Buffer) EvaluationsChanged(uint64, []*drover.Evaluation) {}

// CapacityFreed implements fsm.Observer.
func (*Buffer) CapacityFreed(uint64, string, string) {}

// NodeChanged implements fsm.Observer.
func (*Buffer) NodeChanged(uint64, string, *drover.Node) {}

// JobChanged implements fsm.Observer.
func (*Buffer) JobChanged(uint64, drover.NamespacedID, *drover.Job) {}
