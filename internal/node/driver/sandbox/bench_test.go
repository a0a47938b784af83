package sandbox

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drover"
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

// BenchmarkExec runs /bin/true through the driver's Execer.
func BenchmarkExec(b *testing.B) {
	h := newBench(b).warm(b, nil)
	var took []time.Duration
	for b.Loop() {
		from := time.Now()
		r := h.do(b, drover.ExecutionSpec{Argv: []string{"/bin/true"}})
		took = append(took, time.Since(from))
		if r.receipt.ExitCode != 0 {
			b.Fatal(r.receipt)
		}
	}
	b.ReportMetric(percentile(took, 0.5), "p50-ms")
	b.ReportMetric(percentile(took, 0.99), "p99-ms")
}
