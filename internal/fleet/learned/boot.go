package learned

import (
	"math"
	"time"
)

// histogram counts durations in buckets of a quarter octave from 0.25 s on; old counts fade.
type histogram struct {
	counts [64]float64
	total  float64
	n      int
}

// Add counts d.
func (h *histogram) Add(d time.Duration) {
	for i := range h.counts {
		h.counts[i] *= 0.995
	}
	h.counts[bucketOf(d)]++
	h.total = h.total*0.995 + 1
	h.n++
}

// Quantile returns an upper bound of the q-quantile; 0 if nothing was counted.
func (h *histogram) Quantile(q float64) time.Duration {
	if h.n == 0 {
		return 0
	}
	sum := 0.0
	for i, c := range h.counts {
		if sum += c; sum >= q*h.total-1e-9 {
			return time.Duration(0.25 * math.Exp2(float64(i+1)/4) * float64(time.Second))
		}
	}
	return time.Duration(0.25 * math.Exp2(16) * float64(time.Second))
}

// bucketOf is the bucket of a boot time: four to each doubling, from a quarter of a second on. The last one takes all
// that is longer.
func bucketOf(d time.Duration) int {
	if d.Seconds() <= 0.25 {
		return 0
	}
	return min(63, int(math.Log2(d.Seconds()/0.25)*4))
}

// bootKeys are under what a boot time is counted, from the most specific on: the offering, its type, everything.
func bootKeys(offering, typ string) [3]string { return [3]string{offering, "type " + typ, ""} }

// BootQuantile predicts how long a machine takes from create call to taking work: from its own offering's past, else
// its type's, else everybody's, else a guess.
func (b *Cloud) BootQuantile(offering, typ string, q float64) time.Duration {
	for _, key := range bootKeys(offering, typ) {
		if h := b.boots[key]; h != nil && h.n >= 8 {
			return h.Quantile(q)
		}
	}
	switch {
	case q <= 0.5:
		return 40 * time.Second
	case q <= 0.95:
		return 90 * time.Second
	}
	return 150 * time.Second
}

// BootDeadline is when a machine that has not come up is given up: twice the 99th percentile and at least a minute, but
// never longer than limit.
func (b *Cloud) BootDeadline(offering, typ string, limit time.Duration) time.Duration {
	return min(max(2*b.BootQuantile(offering, typ, 0.99), time.Minute), limit)
}
