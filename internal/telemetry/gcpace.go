package telemetry

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// How much the heap may grow beyond what is live before it is collected, in percent. A small heap grows by more than Go's 100
// %: collecting was a quarter of what bursts of small tasks cost (5,000 fake tasks: 2.37 s of CPU with 100 %, 1.92 s with 200
// %). A large one grows by less, so that a server with a million allocations stays within 4 GiB.
const (
	gcLeast = 32 << 20 // bytes that it may grow at least
	gcSmall = 200      // below 512 MiB
	gcUsual = 100
	gcLarge = 50 // from 1 GiB on
)

// PaceGC adapts GOGC to the heap after each collection, unless the environment sets GOGC or GOMEMLIMIT.
func PaceGC() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	paceAgain(&pacer{percent: gcUsual, live: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}})
}

type pacer struct {
	percent int
	live    []metrics.Sample
}

// paceAgain has the pacer asked after the next collection: that is when the runtime finds a new object unreachable.
func paceAgain(p *pacer) {
	runtime.AddCleanup(new([16]byte), func(p *pacer) {
		p.adapt()
		paceAgain(p)
	}, p)
}

// adapt sets the collector's percentage anew if the live heap asks for one that differs by more than a tenth.
func (p *pacer) adapt() {
	metrics.Read(p.live)
	if next := percentFor(p.live[0].Value.Uint64()); next*10 < p.percent*9 || next*10 > p.percent*11 {
		p.percent = next
		debug.SetGCPercent(next)
	}
}

// percentFor returns GOGC for that much live heap.
func percentFor(live uint64) int {
	switch {
	case live >= 1<<30:
		return gcLarge
	case live >= 512<<20:
		return gcUsual
	}
	return max(gcSmall, int(100*gcLeast/max(live, 1<<20)))
}
