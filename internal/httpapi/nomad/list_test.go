package nomad_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad"
)

// pages reads a list page by page.
func pages[T any](t *testing.T, list func(*api.QueryOptions) ([]T, *api.QueryMeta, error), q api.QueryOptions,
	id func(T) string,
) (ids []string) {
	t.Helper()
	for {
		items, meta, err := list(&q)
		require.NoError(t, err)
		require.LessOrEqual(t, len(items), int(q.PerPage))
		for _, it := range items {
			ids = append(ids, id(it))
		}
		if meta.NextToken == "" {
			return ids
		}
		q.NextToken = meta.NextToken
	}
}

func TestPagesCoverAListOnceInBothDirections(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var want []string
	for i := range 23 {
		// Several share an index, as those of one plan do; the ids run against the indexes.
		id := fmt.Sprintf("%08x-0000-4000-8000-000000000000", 1000-i)
		want = append(want, id)
		w.put(func(tx *store.Txn) {
			tx.PutEvaluation(&drover.Evaluation{
				ID: id, Namespace: "default", JobID: "p", CreateIndex: uint64(20 + i/3),
				ModifyIndex: uint64(20 + i),
			})
		})
	}
	slices.SortFunc(want, func(a, b string) int {
		s := w.store.Snapshot()
		if x, y := s.Evaluation(a).CreateIndex, s.Evaluation(b).CreateIndex; x != y {
			return int(x) - int(y)
		}
		if a < b {
			return -1
		}
		return 1
	})
	id := func(e *api.Evaluation) string { return e.ID }
	// Evaluations().List would sort each page again.
	list := func(q *api.QueryOptions) (evals []*api.Evaluation, meta *api.QueryMeta, err error) {
		meta, err = w.client.Raw().Query("/v1/evaluations", &evals, q)
		return evals, meta, err
	}
	q := api.QueryOptions{PerPage: 4, Filter: `JobID == "p"`}
	require.Equal(t, want, pages(t, list, q, id))
	q.Reverse = true
	slices.Reverse(want)
	require.Equal(t, want, pages(t, list, q, id))
	q = api.QueryOptions{PerPage: 5, Prefix: "000003d"}
	byPrefix := pages(t, list, q, id)
	require.True(t, slices.IsSorted(byPrefix))
	require.NotEmpty(t, byPrefix)
}

func TestNamespacesAreSeparate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(func(tx *store.Txn) {
		j := webJob("web")
		j.Namespace, j.ModifyIndex = "team", 11
		tx.PutJob(j)
	})
	count := func(ns string) int {
		list, _, err := w.client.Jobs().List(&api.QueryOptions{Namespace: ns})
		require.NoError(t, err)
		return len(list)
	}
	require.Equal(t, []int{1, 1, 2, 0}, []int{count(""), count("team"), count("*"), count("none")})
	j, _, err := w.client.Jobs().Info("web", &api.QueryOptions{Namespace: "team"})
	require.NoError(t, err)
	require.Equal(t, "team", *j.Namespace)
}

func TestBlockingQueryEndsAtItsWaitAndNotBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := store.New()
		put(st, func(tx *store.Txn) { j := webJob("web"); j.ModifyIndex = 1; tx.PutJob(j) })
		cfg := nomad.Config{State: storeState{st}, Agent: &fakeAgent{}, Clock: clock.Wall{}}
		h := httpapi.Handler(httpapi.Config{Logger: quiet(), Clock: clock.Wall{}}, nomad.New(cfg))
		ask := func(path string) (time.Duration, *httptest.ResponseRecorder) {
			start := time.Now()
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1"+path, nil))
			return time.Since(start), rec
		}
		for path, want := range map[string]time.Duration{
			"/v1/jobs?index=0":                 0,
			"/v1/jobs?index=1&wait=30s":        30 * time.Second,
			"/v1/jobs?index=1&wait=2500":       2500 * time.Millisecond, // as Nomad's client sends it
			"/v1/jobs?index=1":                 5 * time.Minute,
			"/v1/job/web?index=1&wait=2h":      5 * time.Minute,
			"/v1/job/web?index=99&wait=1s":     time.Second,
			"/v1/job/unknown?index=1&wait=10s": 10 * time.Second,
			"/v1/nodes?index=5&wait=1s":        time.Second,
		} {
			took, _ := ask(path)
			require.Equal(t, want, took, path)
		}
		time.AfterFunc(time.Minute, func() {
			put(st, func(tx *store.Txn) { j := webJob("other"); j.ModifyIndex = 2; tx.PutJob(j) })
		})
		took, rec := ask("/v1/jobs?index=1")
		require.Equal(t, time.Minute, took)
		require.Equal(t, "2", rec.Header().Get("X-Nomad-Index"))
		time.AfterFunc(time.Minute, func() {
			put(st, func(tx *store.Txn) { tx.DeleteJob(st.Snapshot().Job("default", "other")) })
		})
		took, rec = ask("/v1/job/other?index=2")
		require.Equal(t, time.Minute, took)
		require.Equal(t, http.StatusNotFound, rec.Code)
	})
}

func TestAListOfTenThousandJobs(t *testing.T) {
	t.Parallel()
	st := store.New()
	put(st, func(tx *store.Txn) {
		for i := range 10_000 {
			j := webJob(fmt.Sprintf("job-%05d", i))
			j.CreateIndex, j.ModifyIndex = 1, 1
			tx.PutJob(j)
		}
	})
	h := httpapi.Handler(httpapi.Config{Logger: quiet(), Clock: clock.Wall{}},
		nomad.New(nomad.Config{State: storeState{st}, Agent: &fakeAgent{}, Clock: clock.Wall{}}))
	start := time.Now()
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/v1/jobs", nil))
	var stubs []drover.JobListStub
	require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &stubs))
	require.Len(t, stubs, 10_000)
	t.Logf("10,000 jobs listed and decoded in %v, %d bytes", time.Since(start), rec.Body.Len())
}

// A list in which nothing ever was has an index that can be waited for; but of evaluations and allocations Nomad says 0,
// and the tests of its client look for it.
func TestTheIndexIsNeverZero(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, meta, err := w.client.NodePools().List(nil)
	require.NoError(t, err)
	require.EqualValues(t, 1, meta.LastIndex)
	_, meta, err = w.client.NodePools().List(&api.QueryOptions{WaitIndex: meta.LastIndex, WaitTime: 300 * time.Millisecond})
	require.NoError(t, err)
	require.GreaterOrEqual(t, meta.RequestTime, 250*time.Millisecond, "it waited")

	empty := newWorld(t, func(c *nomad.Config) { c.State = storeState{store.New()} }).client
	for name, list := range map[string]func() (*api.QueryMeta, error){
		"evaluations": func() (*api.QueryMeta, error) { _, meta, err := empty.Evaluations().List(nil); return meta, err },
		"allocations": func() (*api.QueryMeta, error) { _, meta, err := empty.Allocations().List(nil); return meta, err },
		"a job's evaluations": func() (*api.QueryMeta, error) {
			_, meta, err := empty.Jobs().Evaluations("none", nil)
			return meta, err
		},
		"a job's allocations": func() (*api.QueryMeta, error) {
			_, meta, err := empty.Jobs().Allocations("none", true, nil)
			return meta, err
		},
	} {
		meta, err := list()
		require.NoError(t, err, name)
		require.Zero(t, meta.LastIndex, name)
	}
}

// A job that is registered anew under the id of a purged one begins without that one's allocations and deployments.
func TestAPurgedJobsPastIsNotListedUnderItsSuccessor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(func(tx *store.Txn) {
		old := tx.Job("default", "web")
		tx.DeleteJob(old)
		next := *old
		next.CreateIndex, next.ModifyIndex, next.JobModifyIndex = 30, 30, 30
		tx.PutJob(&next)
	})
	count := func(path string) int {
		var list []any
		rec := w.do(http.MethodGet, path, "")
		require.Equal(t, http.StatusOK, rec.Code, rec.Body)
		require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &list))
		return len(list)
	}
	require.Zero(t, count("/v1/job/web/allocations"))
	require.Zero(t, count("/v1/job/web/deployments"))
	require.Equal(t, 1, count("/v1/job/web/allocations?all=true"))
	require.Equal(t, 1, count("/v1/job/web/deployments?all=true"))
	require.Equal(t, "null", strings.TrimSpace(w.do(http.MethodGet, "/v1/job/web/deployment", "").Body.String()))
}

// A filter's regular expression may not grow into a program of a hundred megabytes.
func TestFilterPatternsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, filter := range []string{
		`ID matches "` + strings.Repeat("x{1000}", 50) + `"`,
		`not (Type == "batch" or any Datacenters as d { d not matches "` + strings.Repeat("x{1000}", 50) + `" })`,
	} {
		_, _, err := w.client.Jobs().List(&api.QueryOptions{Filter: filter})
		require.ErrorContains(t, err, "its repetitions make more than")
	}
	_, _, err := w.client.Jobs().List(&api.QueryOptions{Filter: `ID matches "^x{3}$"`})
	require.NoError(t, err)
}
