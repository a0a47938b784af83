package telemetry

import (
	"strings"

	metrics "github.com/armon/go-metrics"
)

// Libraries has the libraries of the log and of gossip, which measure through one sink of the process, tell it here: nomad.raft,
// nomad.serf and nomad.memberlist, as in Nomad. The last call in a process wins.
func (s *Samples) Libraries() error {
	cfg := metrics.DefaultConfig("nomad")
	cfg.EnableHostname, cfg.EnableRuntimeMetrics = false, false // the runtime's are there already
	_, err := metrics.NewGlobal(cfg, sink{s})
	return err
}

// sink is where the libraries write to.
type sink struct{ *Samples }

func (s sink) SetGauge(key []string, v float32)        { s.SetGaugeWithLabels(key, v, nil) }
func (s sink) EmitKey([]string, float32)               {}
func (s sink) IncrCounter(key []string, v float32)     { s.IncrCounterWithLabels(key, v, nil) }
func (s sink) AddSample(key []string, v float32)       { s.AddSampleWithLabels(key, v, nil) }
func (s sink) SetPrecisionGauge(k []string, v float64) { s.set(strings.Join(k, "."), v, nil) }

// SetGaugeWithLabels implements metrics.MetricSink.
func (s sink) SetGaugeWithLabels(key []string, v float32, labels []metrics.Label) {
	s.set(strings.Join(key, "."), float64(v), pairs(labels))
}

// IncrCounterWithLabels implements metrics.MetricSink.
func (s sink) IncrCounterWithLabels(key []string, v float32, labels []metrics.Label) {
	s.add(counterKind, strings.Join(key, "."), float64(v), pairs(labels))
}

// AddSampleWithLabels implements metrics.MetricSink. Durations are in milliseconds already.
func (s sink) AddSampleWithLabels(key []string, v float32, labels []metrics.Label) {
	s.add(timedKind, strings.Join(key, "."), float64(v), pairs(labels))
}

func pairs(labels []metrics.Label) (out []string) {
	for _, l := range labels {
		out = append(out, l.Name, l.Value)
	}
	return out
}
