package telemetry

import (
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/usage"
)

// HostMetrics is a source of the machine's gauges, under Nomad's names. stats is asked at each reading; its error
// leaves them out.
func HostMetrics(node func() *drover.Node, stats func() (*usage.HostStats, error)) func(Emit) {
	var ticks hostTicks
	return func(emit Emit) {
		s, err := stats()
		n := node()
		if err != nil || s == nil || n == nil {
			return
		}
		labels := nodeLabels(n)
		if m := s.Memory; m != nil {
			emit("nomad.client.host.memory.total", float64(m.Total), labels...)
			emit("nomad.client.host.memory.available", float64(m.Available), labels...)
			emit("nomad.client.host.memory.used", float64(m.Used), labels...)
			emit("nomad.client.host.memory.free", float64(m.Free), labels...)
		}
		counts := ticks.add(s)
		for _, c := range s.CPU {
			with := append(labels[:len(labels):len(labels)], "cpu", c.CPU)
			emit("nomad.client.host.cpu.total", c.TotalPercent, with...)
			emit("nomad.client.host.cpu.total_percent", c.TotalPercent, with...)
			emit("nomad.client.host.cpu.total_ticks", c.TotalTicks, with...)
			emit("nomad.client.host.cpu.total_ticks_count", counts[c.CPU], with...)
			emit("nomad.client.host.cpu.user", c.User, with...)
			emit("nomad.client.host.cpu.idle", c.Idle, with...)
			emit("nomad.client.host.cpu.system", c.System, with...)
		}
		for _, d := range s.DiskStats {
			with := append(labels[:len(labels):len(labels)], "disk", d.Device)
			emit("nomad.client.host.disk.size", float64(d.Size), with...)
			emit("nomad.client.host.disk.used", float64(d.Used), with...)
			emit("nomad.client.host.disk.available", float64(d.Available), with...)
			emit("nomad.client.host.disk.used_percent", d.UsedPercent, with...)
			emit("nomad.client.host.disk.inodes_percent", d.InodesUsedPercent, with...)
		}
		emit("nomad.client.uptime", float64(s.Uptime), labels...)
	}
}

// hostTicks adds up what each cpu did: MHz, times the seconds between readings.
type hostTicks struct {
	mu     sync.Mutex
	at     int64              // unix ns of the last sample; guarded by mu
	counts map[string]float64 // by cpu; replaced, not changed; guarded by mu
}

// add returns the ticks of each core since the agent's start. The first sample and one that was seen before add
// nothing.
func (h *hostTicks) add(s *usage.HostStats) map[string]float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.Timestamp <= h.at {
		return h.counts
	}
	passed := time.Duration(s.Timestamp - h.at).Seconds()
	if h.at == 0 {
		passed = 0
	}
	next := make(map[string]float64, len(s.CPU))
	for _, c := range s.CPU {
		next[c.CPU] = h.counts[c.CPU] + c.TotalTicks*passed
	}
	h.at, h.counts = s.Timestamp, next
	return next
}

func nodeLabels(n *drover.Node) []string {
	return []string{"node_id", n.ID, "datacenter", n.Datacenter, "node_class", orNone(n.NodeClass), "node_pool", n.NodePool}
}

// orNone is the label's value for an empty text, as Nomad has it.
func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
