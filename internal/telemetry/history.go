package telemetry

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
)

// The bounds of a History: about 220 KB for each environment that is used, 14 MB in all.
const (
	HistorySpan      = 6 * time.Hour
	HistoryStep      = 10 * time.Second // between samples of pools
	latencySlot      = time.Minute
	historySlots     = int64(HistorySpan / HistoryStep)
	latencySlots     = int64(HistorySpan / latencySlot)
	mostEnvironments = 64                                    // see makeRoomLocked; how many others there are is counted
	mostSteps        = 720                                   // of an answer
	unusedFor        = int64(10 * time.Minute / HistoryStep) // then another of the same namespace that is used takes its place
	latencyBuckets   = 40
	firstBucket      = 100 * time.Microsecond
	bucketFactor     = 1.5 // from a bucket to the next: the last one begins at 13 minutes
)

// History keeps how the pools of environments stood, and how long claims, starts and first outputs took, in rings of a fixed size. Its
// times do not follow steps of the wall clock.
type History struct {
	clock clock.Clock
	base  time.Time

	mu      sync.Mutex
	pools   map[string]*poolHistory // guarded by mu: by the environment's key
	of      map[string]int          // guarded by mu: how many of pools a namespace has
	missing []string                // guarded by mu: keys of the environments of the last sample that are not kept
}

type poolHistory struct {
	seen   int64 // the slot of the newest sample
	used   int64 // that of the newest claim or start; 0: there was none
	values [4][]int32
	took   [3]latencyRing
}

// The indices of values and of took.
const (
	poolSize = iota
	poolWarm
	poolClaimed
	poolWaiting
)

const (
	tookClaim = iota
	tookStart
	tookFirstByte
)

// histogram counts by the logarithm of what was measured. Those of several times, or servers, are added bucket by bucket.
type histogram [latencyBuckets]uint32

// latencyRing has a histogram for each minute.
type latencyRing struct {
	minutes []int64 // which minute a place holds
	counts  []histogram
}

// NewHistory returns an empty one.
func NewHistory(c clock.Clock) *History {
	return &History{clock: c, base: c.Now(), pools: map[string]*poolHistory{}, of: map[string]int{}}
}

// now is a time that only goes forward.
func (h *History) now() time.Time { return h.base.Add(h.clock.Now().Sub(h.base)) }

func slotOf(t time.Time, width time.Duration) int64 { return t.UnixNano() / int64(width) }

// Sample takes how all pools stand now. Environments that are gone for as long as anything is kept are forgotten.
func (h *History) Sample(pools []execution.PoolStatus) {
	slot := slotOf(h.now(), HistoryStep)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.missing = nil
	for key, p := range h.pools {
		if slot-p.seen > historySlots {
			h.forgetLocked(key)
		}
	}
	for i := range pools {
		st := &pools[i]
		key := execution.Key(st.Namespace, st.Environment)
		p := h.poolLocked(key, slot, false)
		if p == nil {
			continue
		}
		for s := max(p.seen+1, slot-historySlots+1); s < slot; s++ {
			p.set(s, [4]int{-1, -1, -1, -1})
		}
		p.set(slot, [4]int{st.Size, st.Warm, st.Claimed, st.Waiting})
		p.seen = slot
	}
	for i := range pools {
		if key := execution.Key(pools[i].Namespace, pools[i].Environment); h.pools[key] == nil {
			h.missing = append(h.missing, key)
		}
	}
}

func (p *poolHistory) set(slot int64, to [4]int) {
	for i, v := range to {
		p.values[i][slot%historySlots] = int32(min(v, math.MaxInt32))
	}
}

// poolLocked is that of an environment, which is used just now or only looked at; nil if there are too many others.
func (h *History) poolLocked(key string, slot int64, used bool) *poolHistory {
	p := h.pools[key]
	if p == nil {
		if len(h.pools) >= mostEnvironments && !h.makeRoomLocked(execution.NamespaceOf(key), slot, used) {
			return nil
		}
		p = &poolHistory{seen: slot}
		for i := range p.values {
			p.values[i] = slices.Repeat([]int32{-1}, int(historySlots))
		}
		h.pools[key] = p
		h.of[execution.NamespaceOf(key)]++
	}
	if used {
		p.used = slot
	}
	return p
}

// makeRoomLocked forgets an environment for one of a namespace, if that is fair. Of the namespace that has the most it forgets
// the one that was used longest ago, if that namespace has two more. So all namespaces have equally many, or all that they want.
// Within a namespace one that is used takes the place of one that was not used for long.
func (h *History) makeRoomLocked(namespace string, slot int64, used bool) bool {
	largest := namespace
	for name, n := range h.of {
		if n > h.of[largest] || n == h.of[largest] && largest != namespace && name < largest {
			largest = name
		}
	}
	fair := h.of[largest] > h.of[namespace]+1
	if !fair && (!used || h.of[namespace] == 0) {
		return false
	}
	if !fair {
		largest = namespace
	}
	oldest := ""
	for key, p := range h.pools {
		if execution.NamespaceOf(key) == largest &&
			(oldest == "" || cmp.Or(cmp.Compare(p.used, h.pools[oldest].used), cmp.Compare(key, oldest)) < 0) {
			oldest = key
		}
	}
	if !fair && slot-h.pools[oldest].used < unusedFor {
		return false
	}
	h.forgetLocked(oldest)
	return true
}

func (h *History) forgetLocked(key string) {
	delete(h.pools, key)
	namespace := execution.NamespaceOf(key)
	if h.of[namespace]--; h.of[namespace] == 0 {
		delete(h.of, namespace)
	}
}

// Claimed counts a claim of an environment's runner that succeeded.
func (h *History) Claimed(environment string, took time.Duration) {
	h.took(environment, tookClaim, took)
}

// Started counts a command that was started in an environment's runner.
func (h *History) Started(environment string, took time.Duration) {
	h.took(environment, tookStart, took)
}

// Wrote counts a command that was started in an environment's runner, and wrote something: how long its first output took.
func (h *History) Wrote(environment string, took time.Duration) {
	h.took(environment, tookFirstByte, took)
}

func (h *History) took(environment string, what int, d time.Duration) {
	now := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.poolLocked(environment, slotOf(now, HistoryStep), true); p != nil {
		p.took[what].add(slotOf(now, latencySlot), d)
	}
}

func (r *latencyRing) add(minute int64, d time.Duration) {
	if r.counts == nil {
		r.minutes, r.counts = make([]int64, latencySlots), make([]histogram, latencySlots)
	}
	i := minute % latencySlots
	if r.minutes[i] != minute {
		r.minutes[i], r.counts[i] = minute, histogram{}
	}
	r.counts[i][bucketOf(d)]++
}

func bucketOf(d time.Duration) int {
	if d <= firstBucket {
		return 0
	}
	return min(latencyBuckets-1, 1+int(math.Log(float64(d)/float64(firstBucket))/math.Log(bucketFactor)))
}

// merge adds what another histogram counted.
func (c *histogram) merge(o *histogram) {
	for i := range c {
		c[i] += o[i]
	}
}

// latency is what was counted in short. A time is the middle of its bucket, by its logarithm.
func (c *histogram) latency() (l execution.Latency) {
	for _, n := range c {
		l.Count += int64(n)
	}
	at := func(of float64) time.Duration {
		rank, seen := int64(math.Ceil(of*float64(l.Count))), int64(0)
		for i, n := range c {
			if seen += int64(n); n > 0 && seen >= rank {
				return time.Duration(float64(firstBucket) * math.Pow(bucketFactor, float64(i)-.5))
			}
		}
		return 0
	}
	l.P50, l.P95, l.P99 = at(.5), at(.95), at(.99)
	return l
}

// Read returns what is kept of the time since, of the environments that are asked for. A step of 0 is one that fits. Errors: Invalid.
func (h *History) Read(since, step time.Duration, want func(environment string) bool) (execution.History, error) {
	if since < HistoryStep || since > HistorySpan {
		return execution.History{}, drover.Errorf(drover.Invalid, "since: want from %v to %v, got %v", HistoryStep, HistorySpan, since)
	}
	if step == 0 {
		step = max(HistoryStep, (since / 120).Truncate(HistoryStep))
	}
	if step%HistoryStep != 0 || step < HistoryStep || step > since || since/step > mostSteps {
		return execution.History{}, drover.Errorf(drover.Invalid,
			"step: want a multiple of %v that is not longer than since, which has %d of them at most, got %v", HistoryStep, mostSteps, step)
	}
	wide := (step + latencySlot - 1) / latencySlot * latencySlot
	now := h.now()
	from := now.Add(-since).Truncate(wide)
	out := execution.History{From: from, Step: step, LatencyStep: wide, Pools: []execution.PoolHistory{}}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, key := range h.missing {
		if want(key) { // nobody is told how many there are that they may not see
			out.Missing++
		}
	}
	for key, p := range h.pools {
		if !want(key) {
			continue
		}
		namespace, environment := execution.SplitKey(key)
		one := execution.PoolHistory{Environment: environment, Namespace: namespace}
		for i, to := range []*[]int{&one.Size, &one.Warm, &one.Claimed, &one.Waiting} {
			*to = p.steps(i, from, now, step)
		}
		for i, to := range []*execution.LatencyHistory{&one.Claims, &one.Starts, &one.FirstBytes} {
			*to = p.took[i].steps(from, now, wide)
		}
		out.Pools = append(out.Pools, one)
	}
	slices.SortFunc(out.Pools, func(a, b execution.PoolHistory) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Environment, b.Environment))
	})
	return out, nil
}

// steps are a value's: of warm runners the least of a step, else the most.
func (p *poolHistory) steps(value int, from, now time.Time, step time.Duration) []int {
	list := []int{}
	newest := slotOf(now, HistoryStep)
	for t := from; !t.After(now); t = t.Add(step) {
		of := -1
		first := slotOf(t, HistoryStep)
		for s := max(first, newest-historySlots+1); s < first+int64(step/HistoryStep) && s <= p.seen; s++ {
			switch v := int(p.values[value][s%historySlots]); {
			case v < 0:
			case of < 0:
				of = v
			case value == poolWarm:
				of = min(of, v)
			default:
				of = max(of, v)
			}
		}
		list = append(list, of)
	}
	return list
}

func (r *latencyRing) steps(from, now time.Time, step time.Duration) execution.LatencyHistory {
	out := execution.LatencyHistory{Steps: []execution.Latency{}}
	var all histogram
	for t := from; !t.After(now); t = t.Add(step) {
		var of histogram
		for minute := slotOf(t, latencySlot); r.counts != nil && minute < slotOf(t.Add(step), latencySlot); minute++ {
			if i := minute % latencySlots; r.minutes[i] == minute {
				of.merge(&r.counts[i])
			}
		}
		all.merge(&of)
		out.Steps = append(out.Steps, of.latency())
	}
	out.All = all.latency()
	return out
}
