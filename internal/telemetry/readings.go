package telemetry

import (
	"math"
	"strings"

	dto "github.com/prometheus/client_model/go"
)

// Kind says what a reading is.
type Kind uint8

// Kinds of readings. What is timed has a count and a sum of milliseconds; a counter's sum is its total since the start.
const (
	Gauge Kind = iota
	Counter
	Timed
)

// Reading is what one metric is now.
type Reading struct {
	Name   string // with dots
	Kind   Kind
	Labels [][2]string // names and values
	Count  uint64      // of what is timed
	Value  float64
}

// Filter leaves metrics out of all answers, by rules "+PREFIX" and "-PREFIX" of which the longest that fits counts; standard is for
// those that none fits. Call it before the first reading.
func (m *Metrics) Filter(rules []string, standard bool) {
	m.wanted = func(dotted string) bool {
		longest, wanted := -1, standard
		for _, rule := range rules {
			if prefix := rule[1:]; len(prefix) > longest && strings.HasPrefix(dotted, prefix) {
				longest, wanted = len(prefix), rule[0] == '+'
			}
		}
		return wanted
	}
}

// gather reads all metrics that the filter wants.
func (m *Metrics) gather() ([]*dto.MetricFamily, error) {
	families, err := m.registry.Gather()
	if m.wanted == nil {
		return families, err
	}
	kept := families[:0]
	for _, f := range families {
		if m.wanted(m.dotted(f.GetName())) {
			kept = append(kept, f)
		}
	}
	return kept, err
}

// Readings are all metrics under dotted names as they are now, but for those of the libraries of Go and Prometheus, which tell under
// Nomad's names, too. What cannot be read is left out.
func (m *Metrics) Readings() (out []Reading) {
	families, _ := m.gather() // with an error come those that could be read
	for _, f := range families {
		name := m.dotted(f.GetName())
		if !strings.Contains(name, ".") {
			continue
		}
		for _, metric := range f.GetMetric() {
			if r := readingOf(name, f.GetType(), metric); !math.IsNaN(r.Value) && !math.IsInf(r.Value, 0) {
				out = append(out, r)
			}
		}
	}
	return out
}

func readingOf(name string, kind dto.MetricType, metric *dto.Metric) Reading {
	r := Reading{Name: name}
	for _, l := range metric.GetLabel() {
		r.Labels = append(r.Labels, [2]string{l.GetName(), l.GetValue()})
	}
	switch kind {
	case dto.MetricType_COUNTER:
		r.Kind, r.Value = Counter, metric.GetCounter().GetValue()
	case dto.MetricType_HISTOGRAM: // all of ours are of seconds
		h := metric.GetHistogram()
		r.Kind, r.Count, r.Value = Timed, h.GetSampleCount(), h.GetSampleSum()*1000
	case dto.MetricType_SUMMARY: // of Samples, in Nomad's unit
		h := metric.GetSummary()
		r.Kind, r.Count, r.Value = Timed, h.GetSampleCount(), h.GetSampleSum()
	default:
		r.Value = metric.GetGauge().GetValue() + metric.GetUntyped().GetValue()
	}
	return r
}
