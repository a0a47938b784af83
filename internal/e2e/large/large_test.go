package large_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/e2e/large"
)

// whole is a cluster with 10,000 nodes, 10,000 jobs and 100,000 allocations.
var whole = sync.OnceValue(func() *large.Cluster {
	return large.New(large.Config{Nodes: 10_000, Jobs: 10_000, Allocations: 100_000})
})

// lists are pages of long lists, in the browser and in the API.
var lists = map[string]string{
	"page of jobs":                   "/ui/jobs",
	"page of allocations":            "/ui/allocations",
	"page of nodes":                  "/ui/clients",
	"last of allocations":            "/ui/allocations?sort=created&after=1790000000000099950..z",
	"allocations searched":           "/ui/allocations?q=job-0043+group&status=failed",
	"allocations sorted":             "/ui/allocations?sort=-node",
	"jobs searched":                  "/ui/jobs?q=JOB-00+9&status=dead&sort=-priority",
	"nodes searched":                 "/ui/clients?q=gpu&status=down&sort=class",
	"a node":                         "/ui/clients/none",
	"topology as a table":            "/ui/topology?view=table&q=gpu",
	"topology, columns":              "/ui/topology/data",
	"API: allocations by filter":     `/v1/allocations?per_page=50&filter=ClientStatus+==+"failed"`,
	"API: allocations by two":        `/v1/allocations?per_page=50&filter=NodeName+contains+"42"+and+ClientStatus+==+"failed"`,
	"API: jobs by filter":            `/v1/jobs?per_page=50&filter=Status+==+"dead"`,
	"API: allocations of a whole ns": "/v1/allocations?per_page=50&search=job-00777",
}

func get(tb testing.TB, path string) *httptest.ResponseRecorder {
	tb.Helper()
	r := httptest.NewRequestWithContext(tb.Context(), http.MethodGet, "http://localhost:4646"+path, http.NoBody)
	w := httptest.NewRecorder()
	whole().Handler.ServeHTTP(w, r)
	return w
}

// BenchmarkLists is what a page of a long list costs the server: 150 ms at most, and 100 ms with a filter.
func BenchmarkLists(b *testing.B) {
	for name, path := range lists {
		b.Run(name, func(b *testing.B) {
			get(b, path)
			b.ReportAllocs()
			for b.Loop() {
				get(b, path)
			}
		})
	}
}

// TestLongListsAreSearched: what is found is what there is, on each page.
func TestLongListsAreSearched(t *testing.T) {
	t.Parallel()
	body := get(t, "/ui/allocations?q=job-00421+GROUP&sort=name").Body.String()
	require.Contains(t, body, "10 found")
	require.Contains(t, body, "job-00421.group[9]")
	require.NotContains(t, body, "job-00422")
	require.Contains(t, get(t, "/ui/jobs?status=dead").Body.String(), "1000 found")
	require.Contains(t, get(t, "/ui/clients?status=down").Body.String(), "103 found")
	require.Contains(t, get(t, "/ui/clients?status=draining&q=nothing").Body.String(), "No node is here")
}
