package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/insight"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/e2e/large"
	"github.com/drover-project/drover/internal/server/attention"
)

// spent is what the process had of the processors.
func spent(tb testing.TB) time.Duration {
	var u syscall.Rusage
	require.NoError(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkViewers has a hundred pages of the overview open, as live.js keeps them up to date, on a cluster of 10,000 nodes and
// 100,000 allocations that changes a thousand times a second. It reports what they take of a core beyond the changes, with what
// the browsers' end of the connections takes.
func BenchmarkViewers(b *testing.B) {
	viewers, nodes := 100, 10_000
	if n, err := strconv.Atoi(os.Getenv("VIEWERS")); err == nil {
		viewers = n
	}
	c := large.New(large.Config{
		Nodes: nodes, Jobs: 2000, Allocations: 100_000,
		Attention: func(s *store.Store) func(context.Context, cluster.Viewer) (cluster.Attention, error) {
			return attention.New(func(context.Context) insight.Facts {
				return insight.Facts{Now: clock.Wall{}.Now(), State: s.Snapshot()}
			}, clock.Wall{}).For
		},
	})
	viewerOf := atomic.Int64{}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.RemoteAddr = fmt.Sprintf("10.0.0.%d:1", viewerOf.Add(1)%200) // pages of one address are bounded
		c.Handler.ServeHTTP(w, r)
	}))
	defer site.Close()
	var fetched atomic.Int64
	measure := func(ctx context.Context, d time.Duration) float64 {
		begun, used := clock.Wall{}.Now(), spent(b)
		clock.Sleep(ctx, clock.Wall{}, d)
		return float64(spent(b)-used) * 100 / float64(clock.Wall{}.Now().Sub(begun))
	}
	for b.Loop() {
		ctx, stop := context.WithCancel(b.Context())
		var running sync.WaitGroup
		running.Go(func() { // ends with ctx
			for clock.Sleep(ctx, clock.Wall{}, 10*time.Millisecond) {
				for range 10 {
					c.Change()
				}
			}
		})
		clock.Sleep(ctx, clock.Wall{}, time.Second)
		alone := measure(ctx, 3*time.Second)
		for range viewers {
			running.Go(func() { view(ctx, site.URL, &fetched) }) // ends with ctx
		}
		clock.Sleep(ctx, clock.Wall{}, 2*time.Second)
		fetched.Store(0)
		b.ReportMetric(measure(ctx, 10*time.Second)-alone, "%_of_a_core")
		b.ReportMetric(float64(fetched.Load())/10, "pages/s")
		b.ReportMetric(alone, "%_changes")
		stop()
		running.Wait()
	}
}

// overviewTopics are those that the overview's page names.
const overviewTopics = "topic=Node&topic=Job&topic=Evaluation&topic=Deployment&topic=Environment&" +
	"topic=Runner&topic=Instance&topic=FleetPool"

// view keeps a page up to date as live.js does: a stream that says that something changed, and a fetch at most once a second. It counts
// what it fetched.
func view(ctx context.Context, site string, fetched *atomic.Int64) {
	ask := func(path string) *http.Response {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, site+path, http.NoBody)
		if err != nil {
			return nil
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil || answer.StatusCode != http.StatusOK {
			return nil
		}
		return answer
	}
	page := func() {
		if answer := ask("/ui/"); answer != nil {
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
			fetched.Add(1)
		}
	}
	page()
	changed := make(chan struct{}, 1)
	var stream sync.WaitGroup
	stream.Go(func() { // ends with ctx
		answer := ask("/ui/live?" + overviewTopics)
		if answer == nil {
			return
		}
		defer func() { _ = answer.Body.Close() }()
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			if strings.Contains(lines.Text(), "Topics") {
				select {
				case changed <- struct{}{}:
				default:
				}
			}
		}
	})
	defer stream.Wait()
	for clock.Sleep(ctx, clock.Wall{}, time.Second) {
		patience := clock.Wall{}.NewTimer(4 * time.Second) // data-every="5"
		select {
		case <-changed:
			page()
		case <-ctx.Done():
		case <-patience.C():
			page()
		}
		patience.Stop()
	}
}
