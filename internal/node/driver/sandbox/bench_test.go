package sandbox

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

// percentile of durations; reported in ms.
func percentile(d []time.Duration, p float64) float64 {
	slices.Sort(d)
	return float64(d[int(float64(len(d)-1)*p)].Microseconds()) / 1000
}

// BenchmarkStart starts a warm runner and removes it, one after the other.
func BenchmarkStart(b *testing.B) {
	bench := newBench(b)
	bench.warm(b, nil) // the image
	var starts, removes []time.Duration
	for b.Loop() {
		spec := bench.spec(b, nil)
		spec.Pool = true
		from := time.Now()
		h, err := bench.Start(b.Context(), spec)
		require.NoError(b, err)
		starts = append(starts, time.Since(from))
		from = time.Now()
		require.NoError(b, h.Destroy(b.Context()))
		removes = append(removes, time.Since(from))
	}
	b.ReportMetric(percentile(starts, 0.5), "start-p50-ms")
	b.ReportMetric(percentile(starts, 0.99), "start-p99-ms")
	b.ReportMetric(percentile(removes, 0.5), "remove-p50-ms")
}

// BenchmarkStartRemove8 keeps eight at once.
func BenchmarkStartRemove8(b *testing.B) {
	bench := newBench(b)
	bench.warm(b, nil)
	work := make(chan struct{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { // ends when work is closed
			for range work {
				spec := bench.spec(b, nil)
				spec.Pool = true
				h, err := bench.Start(context.Background(), spec)
				if err != nil {
					b.Error(err)
					continue
				}
				if err := h.Destroy(context.Background()); err != nil {
					b.Error(err)
				}
			}
		})
	}
	from, n := time.Now(), 0
	for b.Loop() {
		work <- struct{}{}
		n++
	}
	close(work)
	wg.Wait()
	b.ReportMetric(float64(n)/time.Since(from).Seconds(), "start+remove/s")
}

// BenchmarkLife is the driver's part of a warm runner's life, with one program in it. What it costs in processor time does
// not depend on what else the machine does.
func BenchmarkLife(b *testing.B) {
	bench := newBench(b)
	bench.warm(b, nil)
	agent, children := spent(b, unix.RUSAGE_SELF), spent(b, unix.RUSAGE_CHILDREN)
	for b.Loop() {
		spec := bench.spec(b, nil)
		spec.Pool = true
		h, err := bench.Start(b.Context(), spec)
		require.NoError(b, err)
		drivertest.Do(b, h.(*handle), execution.Spec{Argv: []string{"/bin/echo", "hello"}})
		require.NoError(b, h.Destroy(b.Context()))
	}
	agent, children = spent(b, unix.RUSAGE_SELF)-agent, spent(b, unix.RUSAGE_CHILDREN)-children
	b.ReportMetric(float64(agent.Microseconds())/float64(b.N), "agent-cpu-µs/op")
	b.ReportMetric(float64(children.Microseconds())/float64(b.N), "children-cpu-µs/op")
}

// spent is the processor time of who.
func spent(b *testing.B, who int) time.Duration {
	b.Helper()
	var r unix.Rusage
	require.NoError(b, unix.Getrusage(who, &r))
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkExec runs /bin/true through the driver's Execer.
func BenchmarkExec(b *testing.B) {
	h := newBench(b).warm(b, nil)
	var took []time.Duration
	for b.Loop() {
		from := time.Now()
		r := drivertest.Do(b, h, execution.Spec{Argv: []string{"/bin/true"}})
		took = append(took, time.Since(from))
		if r.Receipt.ExitCode != 0 {
			b.Fatal(r.Receipt)
		}
	}
	b.ReportMetric(percentile(took, 0.5), "p50-ms")
	b.ReportMetric(percentile(took, 0.99), "p99-ms")
}

// BenchmarkFirstExec runs /bin/true as the first and the second thing in runners that were idle for a while.
func BenchmarkFirstExec(b *testing.B) {
	const many = 40
	bench := newBench(b)
	var took [2][]time.Duration
	for b.Loop() {
		var handles []*handle
		for range many {
			handles = append(handles, bench.warm(b, nil))
		}
		<-time.After(1500 * time.Millisecond) // until memory was given back
		for i := range took {
			for _, h := range handles {
				from := time.Now()
				drivertest.Do(b, h, execution.Spec{Argv: []string{"/bin/true"}})
				took[i] = append(took[i], time.Since(from))
			}
		}
		for _, h := range handles {
			require.NoError(b, h.Destroy(b.Context()))
		}
	}
	for i, d := range took {
		b.ReportMetric(percentile(d, 0.5), fmt.Sprintf("p50-%d-ms", i+1))
		b.ReportMetric(percentile(d, 0.9), fmt.Sprintf("p90-%d-ms", i+1))
	}
}

// BenchmarkIdleMemory holds sandboxes that do nothing, and counts what they take. Each round takes seconds: run it with
// -benchtime 1x.
func BenchmarkIdleMemory(b *testing.B) {
	const many = 50
	bench := newBench(b)
	bench.warm(b, nil)
	before := available(b)
	for b.Loop() {
		var private, cpu float64
		var handles []*handle
		for range many {
			handles = append(handles, bench.warm(b, nil))
		}
		b.ReportMetric(float64(before-available(b))/many/1024, "machine-MB/sandbox")
		ticks := 0.0
		for _, h := range handles {
			private += privateKB(b, h.box.pid)
			ticks -= ticksOf(b, h.box.pid)
		}
		<-time.After(2 * time.Second)
		for _, h := range handles {
			ticks += ticksOf(b, h.box.pid)
		}
		cpu = ticks / 2 / many * 500 // % of a core for 500, at 100 ticks a second
		b.ReportMetric(private/many/1024, "private-MB/sandbox")
		b.ReportMetric(cpu, "%core/500-idle")
		for _, h := range handles {
			require.NoError(b, h.Destroy(b.Context()))
		}
	}
}

// privateKB is what a process has for itself, without pages of its program's file.
func privateKB(b *testing.B, pid int) float64 {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps", pid))
	require.NoError(b, err)
	total, file := 0.0, false
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		switch {
		case strings.Contains(f[0], "-") && !strings.HasSuffix(f[0], ":"):
			file = len(f) > 5 && strings.Contains(f[5], "drover-init")
		case f[0] == "Private_Dirty:" || (f[0] == "Private_Clean:" && !file):
			kb, err := strconv.ParseFloat(f[1], 64)
			require.NoError(b, err)
			total += kb
		}
	}
	return total
}

func ticksOf(b *testing.B, pid int) float64 {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(b, err)
	f := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+2:]))
	user, err := strconv.ParseFloat(f[11], 64)
	require.NoError(b, err)
	system, err := strconv.ParseFloat(f[12], 64)
	require.NoError(b, err)
	return user + system
}

// available memory of the machine in kB; other programs move it too.
func available(b *testing.B) int {
	b.Helper()
	data, err := os.ReadFile("/proc/meminfo")
	require.NoError(b, err)
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); f[0] == "MemAvailable:" {
			kb, err := strconv.Atoi(f[1])
			require.NoError(b, err)
			return kb
		}
	}
	b.Fatal("no MemAvailable")
	return 0
}
