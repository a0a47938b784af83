package sim

import (
	"time"

	"github.com/drover-project/drover/internal/sim/scenario"
)

// fault performs bad luck; it reports whether the verb is one. Faults with a duration end by themselves.
func (w *World) fault(verb, arg string, o scenario.Options) bool {
	d, _ := time.ParseDuration(arg) // of the servers' faults
	s := w.servers[o["server"]%len(w.servers)]
	if w.quorum != nil && w.serverFault(s, verb, d, o) {
		return true
	}
	switch verb {
	case "snapshot":
		if !s.process.Over {
			s.compact()
		}
	case "crash":
		w.crash(s)
		w.After(d, "boot", func() { w.recover(s.number) })
	case "trap":
		w.trap = trap{point: trapPoint(o["point"]), down: d}
	case "lose":
		s.loseLeadership()
		w.After(d, "elected", func() { w.recover(0) })
	case "logfull":
		w.full = true
		w.After(d, "room", func() { w.full = false })
	case "lossy":
		w.lossy = true
		w.After(d, "lossless", func() { w.lossy = false })
	case "stuck":
		w.stuck = true
		w.After(d, "unstuck", func() { w.stuck = false })
	default:
		return w.nodeFault(verb, arg, o)
	}
	return true
}

// nodeFault performs bad luck of one node, and reports whether the verb names any. Option "for" is how long it lasts,
// in seconds. Agents that were killed come back after that time, unless something else started them.
func (w *World) nodeFault(verb, name string, o scenario.Options) bool {
	n := w.nodeNamed(name)
	d := time.Duration(o["for"]) * time.Second
	switch verb {
	case "kill":
		n.kill()
	case "reboot", "wipe":
		n.reboot(verb == "wipe")
	case "cut":
		n.isolate(d)
		return true
	case "stand":
		if n.Up() && n.host != nil {
			n.host.Stop()
			w.After(d, "goes on", n.host.GoOn)
		}
		return true
	case "slow":
		n.Slow = true
		w.After(d, "fast", func() { n.Slow = false })
		return true
	case "full":
		n.Full = true
		w.After(d, "empty", func() { n.Full = false })
		return true
	case "skew":
		n.Skew = time.Duration(o["seconds"]) * time.Second
		return true
	case "oom":
		n.OOM()
		return true
	default:
		return false
	}
	// Only faults that end the agent get here.
	w.After(d, "back", func() {
		if !n.Up() {
			n.start()
		}
	})
	return true
}

// recover brings the server back, or elects one that is alone.
func (w *World) recover(number int) {
	switch s := w.servers[number]; {
	case s.process.Over:
		w.boot(number)
	case w.quorum == nil && !s.accepts:
		s.lead()
	}
}

// heal ends all faults. Tasks do not fail any more either.
func (w *World) heal() {
	w.Say("the faults are over")
	w.quiet, w.healed, w.lossy, w.full, w.stuck = true, w.Now, false, false, false
	for i := range w.servers {
		w.recover(i)
	}
	if w.quorum != nil {
		w.healServers()
	}
	for _, n := range w.nodes {
		n.cut, n.Slow, n.Full = false, false, false
		if n.host != nil && n.host.Stopped {
			n.host.GoOn()
		}
		if !n.Up() {
			n.start()
		}
	}
}
