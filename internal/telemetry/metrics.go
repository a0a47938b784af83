package telemetry

import (
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/invariant"
)

// Metrics is a process's set of metrics. Names are given with dots ("nomad.client.uptime", as in /v1/metrics);
// Prometheus sees underscores.
type Metrics struct {
	clock    clock.Clock
	registry *prometheus.Registry
	wanted   func(dotted string) bool // nil: all are

	mu    sync.RWMutex
	names map[string]string // by Prometheus name: the dotted one
}

// NewMetrics returns a set that already tells about the Go runtime.
func NewMetrics(c clock.Clock) *Metrics {
	m := &Metrics{clock: c, registry: prometheus.NewRegistry(), names: map[string]string{}}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.Source(runtimeMetrics)
	return m
}

// name returns the flat name that Prometheus allows, and remembers the dotted one for Nomad's JSON.
func (m *Metrics) name(dotted string) string {
	flat := strings.NewReplacer(".", "_", "-", "_").Replace(dotted)
	m.mu.RLock()
	_, ok := m.names[flat]
	m.mu.RUnlock()
	if !ok {
		m.mu.Lock()
		m.names[flat] = dotted
		m.mu.Unlock()
	}
	return flat
}

// Counter registers a counter; it panics if the name is taken.
func (m *Metrics) Counter(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.name(name), Help: help}, labels)
	m.registry.MustRegister(c)
	return c
}

// Durations registers a histogram of seconds, from 0.1 ms to 30 s.
func (m *Metrics) Durations(name, help string, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: m.name(name), Help: help,
		Buckets: []float64{.0001, .0003, .001, .003, .01, .03, .1, .3, 1, 3, 10, 30},
	}, labels)
	m.registry.MustRegister(h)
	return h
}

// Spans registers a histogram of seconds, from 0.1 s to an hour.
func (m *Metrics) Spans(name, help string, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: m.name(name), Help: help,
		Buckets: []float64{.1, .3, 1, 3, 10, 20, 30, 45, 60, 90, 120, 180, 300, 600, 1200, 3600},
	}, labels)
	m.registry.MustRegister(h)
	return h
}

// Emit gives one gauge; labels are pairs of name and value.
type Emit func(name string, value float64, labels ...string)

// Source registers a function that is called on each reading, for gauges that are derived from state. It may be
// called by several goroutines at once. What it emits twice under the same labels, or with odd labels, is an error of
// the reading.
func (m *Metrics) Source(read func(Emit)) { m.registry.MustRegister(source{m, read}) }

type source struct {
	metrics *Metrics
	read    func(Emit)
}

// Describe says nothing: what will be emitted is not known before.
func (s source) Describe(chan<- *prometheus.Desc) {}

// Collect reads.
func (s source) Collect(out chan<- prometheus.Metric) {
	s.read(func(name string, value float64, labels ...string) {
		var keys, values []string
		for i := 0; i+1 < len(labels); i += 2 {
			keys, values = append(keys, labels[i]), append(values, labels[i+1])
		}
		desc := prometheus.NewDesc(s.metrics.name(name), name, keys, nil)
		metric, err := prometheus.NewConstMetric(desc, prometheus.GaugeValue, value, values...)
		if err != nil {
			metric = prometheus.NewInvalidMetric(desc, err)
		}
		out <- metric
	})
}

// runtimeMetrics emits what the Go runtime knows, under Nomad's names, and our count of breached invariants.
func runtimeMetrics(emit Emit) {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	emit("nomad.runtime.num_goroutines", float64(runtime.NumGoroutine()))
	emit("nomad.runtime.alloc_bytes", float64(s.Alloc))
	emit("nomad.runtime.sys_bytes", float64(s.Sys))
	emit("nomad.runtime.malloc_count", float64(s.Mallocs))
	emit("nomad.runtime.free_count", float64(s.Frees))
	emit("nomad.runtime.heap_objects", float64(s.HeapObjects))
	emit("nomad.runtime.total_gc_pause_ns", float64(s.PauseTotalNs))
	emit("nomad.runtime.total_gc_runs", float64(s.NumGC))
	emit("drover.invariant.breaches", float64(invariant.Breaches()))
}

// Requests returns a function for httpapi.Config.Observe.
func (m *Metrics) Requests() func(pattern string, status int, took time.Duration) {
	seconds := m.Durations("drover.http.request", "HTTP requests by route and class of status", "route", "status")
	classes := [...]string{"none", "1xx", "2xx", "3xx", "4xx", "5xx"}
	return func(pattern string, status int, took time.Duration) {
		class := classes[min(max(status/100, 0), len(classes)-1)]
		seconds.WithLabelValues(pattern, class).Observe(took.Seconds())
	}
}
