package simulator

import (
	"encoding/hex"
	"fmt"
	"math"
	"time"

	"github.com/drover-project/drover/fleet"
)

// Result is what a run came to.
type Result struct {
	Tasks     int
	Redone    int // starts of work that was lost with its machine
	Created   int
	Why       Reasons
	Again     int // machines bought within ten minutes after an equal one was returned
	Peak      int
	Cost      float64
	Bound     float64       // what a clairvoyant would pay at least
	Hours     float64       // of machines
	Waited    time.Duration // by all tasks together
	Until     time.Duration // virtual time at the end
	Events    int
	Decisions int
	Actions   int
	Hash      string
	Points    []fleet.SimulatedPoint
	Adopted   time.Duration            // from the last restart until every machine had called home
	Stopped   map[string]time.Duration // how long tasks waited, together, while a limit kept machines from being bought
	asked     []asked
	waits     [512]int // by a twelfth of an octave of milliseconds
	waited    int
}

// Reasons counts machines by why they were bought.
type Reasons map[string]int

// asked is how many machines were asked for until then.
type asked struct {
	at    time.Duration
	total int
}

// ask notes that the cloud was asked for n machines; totals are kept so that CreatedAt finds the nth.
func (r *Result) ask(at time.Duration, n int) {
	if k := len(r.asked); k > 0 {
		n += r.asked[k-1].total
	}
	r.asked = append(r.asked, asked{at, n})
}

// CreatedAt returns when the cloud was asked for the nth machine, repeated calls counted again; 0 if it was not.
func (r *Result) CreatedAt(n int) time.Duration {
	for _, a := range r.asked {
		if a.total >= n {
			return a.at
		}
	}
	return 0
}

// wait counts how long a task waited for its first start.
func (r *Result) wait(d time.Duration) {
	k := 0
	if ms := float64(d) / 1e6; ms >= 1 {
		k = min(len(r.waits)-1, 1+int(12*math.Log2(ms)))
	}
	r.waits[k]++
	r.waited++
}

// Wait returns an upper bound of the q-quantile of the tasks' waiting.
func (r *Result) Wait(q float64) time.Duration {
	sum := 0
	for k, n := range r.waits {
		if sum += n; float64(sum) >= q*float64(r.waited) {
			if k == 0 {
				return 0
			}
			return time.Duration(math.Exp2(float64(k)/12) * 1e6).Round(time.Millisecond)
		}
	}
	return 0
}

// Ratio is the cost over the clairvoyant's.
func (r *Result) Ratio() float64 { return r.Cost / r.Bound }

// String tells the result in a line.
func (r Result) String() string {
	return fmt.Sprintf("tasks %d, cost %.2f = %.2f x bound, wait mean %s p50 %s p95 %s p99 %s, "+
		"machines %d (peak %d, again %d, redone tasks %d, %v), %d events, %d decisions, %s",
		r.Tasks, r.Cost, r.Ratio(), r.MeanWait().Round(time.Millisecond), r.Wait(0.5), r.Wait(0.95), r.Wait(0.99),
		r.Created, r.Peak, r.Again, r.Redone, r.Why, r.Events, r.Decisions, r.Until.Round(time.Second))
}

// finish completes the result with what is only known at the end. It also works for a run that a breach ended.
func (s *Sim) finish() Result {
	r := s.result
	r.Tasks, r.Cost, r.Bound = len(s.tasks), s.cloud.Cost(s.time()), s.cfg.Work.Bound(s.cfg.Policy.Offerings())
	r.Peak, r.Hours, r.Until, r.Again = s.integral.peak, s.integral.seconds/3600, time.Duration(s.now), s.thrash.again
	r.Hash = hex.EncodeToString(s.hash.Sum(nil))
	return r
}
