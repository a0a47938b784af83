package raftlog

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/control/command"
)

func BenchmarkPropose(b *testing.B) {
	for _, where := range []string{"memory", "disk"} {
		for _, callers := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/%d", where, callers), func(b *testing.B) {
				cfg := Config{}
				if where == "disk" {
					cfg.DataDir = b.TempDir()
				}
				l, _ := start(b, cfg)
				left := make(chan struct{}, callers)
				var failed atomic.Int64
				b.ResetTimer()
				work := make(chan int, callers)
				for range callers {
					go func() { // ends when work is closed
						for range work {
							if _, _, err := l.Propose(b.Context(), &command.DeleteEvals{IDs: []string{"x"}}); err != nil {
								failed.Add(1)
							}
						}
						left <- struct{}{}
					}()
				}
				for i := range b.N {
					work <- i
				}
				close(work)
				for range callers {
					<-left
				}
				require.Zero(b, failed.Load())
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "proposals/s")
			})
		}
	}
}
