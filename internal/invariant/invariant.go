package invariant

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
)

var breaches atomic.Uint64

// Breaches returns how many checks failed in this process; telemetry exports it.
func Breaches() uint64 { return breaches.Load() }

// Check reports a breach unless cond holds. In tests it panics.
func Check(cond bool, format string, args ...any) {
	if cond {
		return
	}
	breaches.Add(1)
	msg := fmt.Sprintf(format, args...)
	if testing.Testing() {
		panic("invariant: " + msg)
	}
	slog.Error("invariant breached", "invariant", msg)
}
