package relay

import (
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/httpapi"
)

// BenchmarkGet asks for little at a follower, and the same at the leader. The difference of the medians is what a relay costs.
func BenchmarkGet(b *testing.B) {
	w := newWorld(b)
	var list []*server
	for _, id := range []string{"a", "b"} {
		list = append(list, w.add(id, "global", nil, httpapi.Route{Pattern: "GET /x", Where: httpapi.Leader, Handle: say("some text")}))
	}
	w.lead("a")
	for i, name := range []string{"leader", "follower"} {
		b.Run(name, func(b *testing.B) {
			c := client(b)
			r, err := http.NewRequestWithContext(b.Context(), "GET", "http://"+list[i].http+"/x", nil)
			require.NoError(b, err)
			r.Header.Set("X-Nomad-Token", "token")
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				res, err := c.Do(r)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}
