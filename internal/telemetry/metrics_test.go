package telemetry

import (
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/clock"
)

func (m *Metrics) answer(query string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/metrics"+query, nil))
	return w
}

// JSON knows neither NaN nor infinity: one such gauge must not take all others with it.
func TestOddNumbersSpoilNoReading(t *testing.T) {
	t.Parallel()
	m := NewMetrics(clock.Wall{})
	m.Source(func(emit Emit) {
		emit("odd.nan", math.NaN())
		emit("odd.inf", math.Inf(1))
		emit("odd.minus_inf", math.Inf(-1))
		emit("even", 2.5)
	})
	w := m.answer("")
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	var s summary
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &s))
	values := map[string]float64{}
	for _, g := range s.Gauges {
		values[g.Name] = g.Value
	}
	for name, want := range map[string]float64{"odd.nan": 0, "odd.inf": 0, "odd.minus_inf": 0, "even": 2.5} {
		got, ok := values[name]
		require.True(t, ok, name)
		require.InDelta(t, want, got, 0, name)
	}
}

// A source that emits a gauge twice is wrong; the others are shown nevertheless.
func TestAWrongSourceSpoilsNoOther(t *testing.T) {
	t.Parallel()
	m := NewMetrics(clock.Wall{})
	m.Source(func(emit Emit) { emit("twice", 1, "a", "b"); emit("twice", 2, "a", "b") })
	m.Source(func(emit Emit) { emit("once", 3) })
	w := m.answer("?pretty")
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Body.String(), `"Name": "once"`)
}

func TestNamesAreShownAsTheyWereGiven(t *testing.T) {
	t.Parallel()
	m := NewMetrics(clock.Wall{})
	m.Source(func(emit Emit) { emit("nomad.node-pool.size_mb", 1) })
	require.Contains(t, m.answer("").Body.String(), `"nomad.node-pool.size_mb"`)
	require.Contains(t, m.answer("?format=prometheus").Body.String(), "nomad_node_pool_size_mb 1")
	require.Contains(t, m.answer("").Body.String(), `"go_goroutines"`, "what others registered keeps its name")
	require.Panics(t, func() { m.Counter("drover.x", "x"); m.Counter("drover.x", "x") }, "a name is taken once")
}

func TestSamplesHaveCountSumAndMean(t *testing.T) {
	t.Parallel()
	m := NewMetrics(clock.Wall{})
	d, s := m.Durations("drover.short", "x"), m.Spans("drover.long", "x", "kind")
	for _, v := range []float64{1, 2, 6} {
		d.WithLabelValues().Observe(v)
		s.WithLabelValues("a").Observe(10 * v)
	}
	m.Durations("drover.never", "x").WithLabelValues()
	var all summary
	require.NoError(t, json.Unmarshal(m.answer("").Body.Bytes(), &all))
	got := map[string]sampled{}
	for _, s := range all.Samples {
		got[s.Name] = s
	}
	require.Equal(t, sampled{Name: "drover.short", Count: 3, Sum: 9, Mean: 3, Labels: map[string]string{}}, got["drover.short"])
	require.Equal(t, sampled{Name: "drover.long", Count: 3, Sum: 90, Mean: 30, Labels: map[string]string{"kind": "a"}}, got["drover.long"])
	require.Equal(t, sampled{Name: "drover.never", Labels: map[string]string{}}, got["drover.never"], "nothing is divided by nothing")
}

func TestRequestsAreCountedByClass(t *testing.T) {
	t.Parallel()
	m := NewMetrics(clock.Wall{})
	observe := m.Requests()
	for _, status := range []int{-1, 0, 99, 101, 200, 204, 302, 404, 429, 500, 599, 600, 1000} {
		observe("GET /x", status, time.Millisecond)
	}
	text := m.answer("?format=prometheus").Body.String()
	for class, count := range map[string]string{"none": "3", "1xx": "1", "2xx": "2", "3xx": "1", "4xx": "2", "5xx": "4"} {
		require.Contains(t, text, `drover_http_request_count{route="GET /x",status="`+class+`"} `+count+"\n")
	}
}

// The larger the heap the less it may grow, and a change is worth its cost only when it is large.
func TestGCPace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.Uint64Range(0, 8<<30).Draw(t, "a")
		b := rapid.Uint64Range(a, 8<<30).Draw(t, "b")
		require.GreaterOrEqual(t, percentFor(a), percentFor(b))
		require.GreaterOrEqual(t, percentFor(a), gcLarge)
	})
}
