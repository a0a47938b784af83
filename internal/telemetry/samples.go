package telemetry

import (
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Samples are metrics whose names are not known before: those of libraries, and what is measured under Nomad's names, which
// are in milliseconds. A sample is told as its count and sum.
type Samples struct {
	metrics *Metrics

	mu    sync.Mutex // guards what follows
	kinds map[string]prometheus.ValueType
	all   map[string]*sample // by name and labels
}

// sample is one of them.
type sample struct {
	name         string
	keys, values []string // of the labels
	kind         prometheus.ValueType
	count        uint64
	value        float64 // a gauge's, or the sum
}

// mostSamples bounds how many there are: a label of a library's may have any number of values.
const mostSamples = 2000

// Kinds of samples; what is timed has the third.
const (
	gaugeKind   = prometheus.GaugeValue
	counterKind = prometheus.CounterValue
	timedKind   = prometheus.UntypedValue
)

// Samples registers a set; call it once.
func (m *Metrics) Samples() *Samples {
	s := &Samples{metrics: m, kinds: map[string]prometheus.ValueType{}, all: map[string]*sample{}}
	m.registry.MustRegister(s)
	return s
}

// Took adds a duration. It may be called on nil, which measures nothing.
func (s *Samples) Took(name string, took time.Duration, labels ...string) {
	if s != nil {
		s.add(timedKind, name, float64(took)/float64(time.Millisecond), labels)
	}
}

// Count adds to a counter. It may be called on nil.
func (s *Samples) Count(name string, n float64, labels ...string) {
	if s != nil {
		s.add(counterKind, name, n, labels)
	}
}

// set sets a gauge.
func (s *Samples) set(name string, v float64, labels []string) { s.add(gaugeKind, name, v, labels) }

// add takes a value. The first kind of a name is its only one: Prometheus knows one type for each.
func (s *Samples) add(kind prometheus.ValueType, name string, v float64, labels []string) {
	key := name
	for _, l := range labels {
		key += "\x00" + l
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.all[key]
	if one == nil {
		if known, ok := s.kinds[name]; ok && known != kind || len(s.all) >= mostSamples {
			return
		}
		s.kinds[name] = kind
		one = &sample{name: s.metrics.name(allowed(name)), kind: kind}
		for i := 0; i+1 < len(labels); i += 2 {
			one.keys, one.values = append(one.keys, flat(labels[i])), append(one.values, labels[i+1])
		}
		s.all[key] = one
	}
	one.count++
	if kind == gaugeKind {
		one.value = v
	} else {
		one.value += v
	}
}

// allowed is a dotted name without the characters that no name may have.
func allowed(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_.-", r) {
			return r
		}
		return '_'
	}, name)
}

// flat is a label's name.
func flat(name string) string { return strings.NewReplacer(".", "_", "-", "_").Replace(allowed(name)) }

// Describe says nothing: what there will be is not known before.
func (s *Samples) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (s *Samples) Collect(out chan<- prometheus.Metric) {
	s.mu.Lock()
	list := make([]sample, 0, len(s.all))
	for _, one := range s.all {
		list = append(list, *one)
	}
	s.mu.Unlock()
	for _, one := range list {
		desc := prometheus.NewDesc(one.name, one.name, one.keys, nil)
		var metric prometheus.Metric
		var err error
		if one.kind == timedKind {
			metric, err = prometheus.NewConstSummary(desc, one.count, one.value, nil, one.values...)
		} else {
			metric, err = prometheus.NewConstMetric(desc, one.kind, one.value, one.values...)
		}
		if err != nil {
			metric = prometheus.NewInvalidMetric(desc, err)
		}
		out <- metric
	}
}
