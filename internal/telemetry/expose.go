package telemetry

import (
	"encoding/json"
	"math"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
)

// summary is the JSON of /v1/metrics in Nomad.
type summary struct {
	Timestamp       string
	Gauges          []gauge
	PrecisionGauges []struct{} // Nomad has its gauges twice in newer versions; ours are float64 already
	Points          []struct{}
	Counters        []sampled
	Samples         []sampled
}

// gauge is a gauge in Nomad's JSON.
type gauge struct {
	Name   string
	Value  float64
	Labels map[string]string
}

// sampled is a counter or a sample in Nomad's JSON. Min, Max and Stddev stay 0, as a registry keeps no single values.
type sampled struct {
	Name   string
	Count  uint64
	Rate   float64
	Sum    float64
	Min    float64
	Max    float64
	Mean   float64
	Stddev float64
	Labels map[string]string
}

// ServeHTTP answers /v1/metrics: JSON in Nomad's shape, or with ?format=prometheus the text format. Counters are
// totals since the start, not the last ten seconds as in Nomad.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch format := r.URL.Query().Get("format"); format {
	case "prometheus":
		promhttp.HandlerFor(prometheus.GathererFunc(m.gather), promhttp.HandlerOpts{DisableCompression: true}).ServeHTTP(w, r)
	case "":
		m.serveJSON(w, r)
	default:
		http.Error(w, "unknown format "+format+": it is prometheus or nothing", http.StatusBadRequest)
	}
}

// serveJSON answers with all metrics in the JSON form of Nomad's /v1/metrics.
func (m *Metrics) serveJSON(w http.ResponseWriter, r *http.Request) {
	families, err := m.gather()
	if err != nil && len(families) == 0 {
		http.Error(w, "gathering metrics: "+err.Error(), http.StatusInternalServerError)
		return
	}
	s := summary{
		Timestamp: m.clock.Now().UTC().Format("2006-01-02 15:04:05 +0000 UTC"),
		Gauges:    []gauge{}, PrecisionGauges: []struct{}{}, Points: []struct{}{}, Counters: []sampled{}, Samples: []sampled{},
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			s.add(m.dotted(family.GetName()), family.GetType(), metric)
		}
	}
	var buf []byte
	if r.URL.Query().Has("pretty") {
		buf, err = json.MarshalIndent(s, "", "    ")
	} else {
		buf, err = json.Marshal(s)
	}
	if err != nil {
		http.Error(w, "encoding metrics: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(buf) // fails only when the client is gone
}

// dotted returns the name that a flat one was made from; names from elsewhere stay as they are.
func (m *Metrics) dotted(flat string) string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if d, ok := m.names[flat]; ok {
		return d
	}
	return flat
}

func (s *summary) add(name string, kind dto.MetricType, metric *dto.Metric) {
	labels := map[string]string{}
	for _, l := range metric.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	switch kind {
	case dto.MetricType_COUNTER:
		v := metric.GetCounter().GetValue()
		s.Counters = append(s.Counters, sampled{Name: name, Count: uint64(v), Sum: v, Labels: labels})
	case dto.MetricType_HISTOGRAM:
		h := metric.GetHistogram()
		s.Samples = append(s.Samples, sampleOf(name, h.GetSampleCount(), h.GetSampleSum(), labels))
	case dto.MetricType_SUMMARY:
		h := metric.GetSummary()
		s.Samples = append(s.Samples, sampleOf(name, h.GetSampleCount(), h.GetSampleSum(), labels))
	default:
		v := metric.GetGauge().GetValue() + metric.GetUntyped().GetValue()
		if math.IsNaN(v) || math.IsInf(v, 0) { // JSON has neither
			v = 0
		}
		s.Gauges = append(s.Gauges, gauge{name, v, labels})
	}
}

// sampleOf is a histogram or summary as one sample, with its mean.
func sampleOf(name string, count uint64, sum float64, labels map[string]string) sampled {
	out := sampled{Name: name, Count: count, Sum: sum, Labels: labels}
	if count > 0 {
		out.Mean = sum / float64(count)
	}
	return out
}
