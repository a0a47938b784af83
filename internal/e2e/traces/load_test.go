package traces

import (
	"context"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// load measures how much longer work takes on this machine than it would if the machine had nothing else to do.
type load struct {
	mu     sync.Mutex
	recent float64
}

const (
	probe     = 5 * time.Millisecond // of processor time
	probeGap  = 2 * time.Second
	probeMost = 10 // a machine slower than that shows as failures
)

// measure works for a few milliseconds now and then, and compares the clock with the processor time that it got.
func (l *load) measure(ctx context.Context) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ticker := time.NewTicker(probeGap)
	defer ticker.Stop()
	for {
		began, worked := time.Now(), threadTime()
		for threadTime()-worked < probe {
		}
		factor := float64(time.Since(began)) / float64(threadTime()-worked)
		l.mu.Lock()
		l.recent += (min(max(factor, 1), probeMost) - l.recent) / 4
		l.mu.Unlock()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (l *load) factor() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.recent, 1)
}

func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
