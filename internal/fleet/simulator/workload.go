package simulator

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
)

// Task is a piece of work: it arrives, needs a place, runs for a while.
type Task struct {
	At       time.Duration
	Run      time.Duration
	Each     drover.Capacity
	Priority int
	Line     int // of the trace that tells of it; 0 = it was drawn
}

// String says which task it is.
func (t *Task) String() string {
	if t.Line > 0 {
		return fmt.Sprintf("the task of line %d", t.Line)
	}
	return fmt.Sprintf("the task that comes at %s", t.At.Round(time.Second))
}

// Workload is tasks in the order of their arrival.
type Workload []Task

// Mix is which tasks come.
type Mix struct {
	Sizes []drover.Capacity // equally likely
	Run   time.Duration     // mean
	Heavy float64           // tail index of a Pareto distribution of run times; 0 = exponential
}

// Mixed is a mix of small and bigger tasks.
func Mixed(run time.Duration) Mix {
	return Mix{Run: run, Sizes: []drover.Capacity{
		{CPU: 500, MemoryMB: 512},
		{CPU: 1000, MemoryMB: 1024},
		{CPU: 1000, MemoryMB: 2048},
		{CPU: 2000, MemoryMB: 4096},
	}}
}

// task draws a task that arrives then. The Pareto distribution is scaled to the mean run time, which is infinite for
// indexes up to 1; no task runs for less than a second.
func (m Mix) task(rng *rand.Rand, at time.Duration) Task {
	run := rng.ExpFloat64()
	if m.Heavy > 1 {
		run = (m.Heavy - 1) / m.Heavy * math.Pow(1-rng.Float64(), -1/m.Heavy)
	}
	return Task{At: at, Run: max(time.Duration(run*float64(m.Run)), time.Second), Each: m.Sizes[rng.IntN(len(m.Sizes))], Priority: 50}
}

// Varying draws arrivals at a rate (per hour) that changes in time.
func Varying(seed uint64, length time.Duration, mix Mix, highest float64, rate func(time.Duration) float64) Workload {
	rng := rand.New(rand.NewPCG(seed, 1))
	var w Workload
	for at := time.Duration(0); ; {
		at += time.Duration(rng.ExpFloat64() / highest * float64(time.Hour))
		if at >= length {
			return w
		}
		// Thinning: arrivals are drawn at the highest rate, and each is kept with the probability of the rate of its
		// time.
		if rng.Float64()*highest < rate(at) {
			w = append(w, mix.task(rng, at))
		}
	}
}

// Poisson arrives at a constant rate per hour.
func Poisson(seed uint64, length time.Duration, mix Mix, perHour float64) Workload {
	return Varying(seed, length, mix, perHour, func(time.Duration) float64 { return perHour })
}

// Daily swings between a tenth of the rate at night and the rate by day.
func Daily(seed uint64, length time.Duration, mix Mix, perHour float64) Workload {
	return Varying(seed, length, mix, perHour, func(at time.Duration) float64 {
		return perHour * (0.55 - 0.45*math.Cos(2*math.Pi*at.Hours()/24))
	})
}

// Bursty switches between quiet (a tenth) and loud, for half an hour and ten minutes on average.
func Bursty(seed uint64, length time.Duration, mix Mix, perHour float64) Workload {
	rng := rand.New(rand.NewPCG(seed, 2))
	type phase struct {
		until time.Duration
		loud  bool
	}
	var phases []phase
	for at, loud := time.Duration(0), false; at < length; loud = !loud {
		mean := 30 * time.Minute
		if loud {
			mean = 10 * time.Minute
		}
		at += time.Duration(rng.ExpFloat64() * float64(mean))
		phases = append(phases, phase{at, loud})
	}
	return Varying(seed, length, mix, perHour, func(at time.Duration) float64 {
		k, _ := slices.BinarySearchFunc(phases, at, func(p phase, at time.Duration) int {
			if p.until <= at {
				return -1
			}
			return 1
		})
		if k < len(phases) && phases[k].loud {
			return perHour
		}
		return perHour / 10
	})
}

// Burst is n tasks at once.
func Burst(seed uint64, n int, at time.Duration, mix Mix) Workload {
	rng := rand.New(rand.NewPCG(seed, 3))
	w := make(Workload, n)
	for i := range w {
		w[i] = mix.task(rng, at)
	}
	return w
}

// Join merges workloads.
func Join(all ...Workload) Workload {
	w := slices.Concat(all...)
	slices.SortStableFunc(w, func(a, b Task) int { return int(a.At - b.At) })
	return w
}

// Trace reads a workload: a line a task, "arrival-seconds run-seconds cpu-MHz memory-MB [priority]", # begins a
// comment. Errors: Invalid with the line.
func Trace(r io.Reader) (Workload, error) {
	var w Workload
	scan := bufio.NewScanner(r)
	for line := 1; scan.Scan(); line++ {
		text, _, _ := strings.Cut(scan.Text(), "#")
		if strings.TrimSpace(text) == "" {
			continue
		}
		var at, run float64
		t := Task{Priority: 50, Line: line}
		n, err := fmt.Sscan(text, &at, &run, &t.Each.CPU, &t.Each.MemoryMB, &t.Priority)
		if n < 4 || at < 0 || run < 0 || t.Each.CPU < 0 || t.Each.MemoryMB < 0 {
			return nil, drover.Errorf(drover.Invalid, "trace line %d: want arrival, run, cpu, memory and perhaps priority, got %q (%v)", line,
				text, err)
		}
		t.At, t.Run = time.Duration(at*float64(time.Second)), time.Duration(run*float64(time.Second))
		w = append(w, t)
	}
	if err := scan.Err(); err != nil {
		return nil, fmt.Errorf("reading the trace: %w", err)
	}
	return Join(w), nil
}
