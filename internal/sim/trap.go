package sim

import (
	"time"

	"github.com/drover-project/drover/internal/sim/virtual"
)

// trap kills the server at the next passing of one point on the way of a claim or release. By chance alone a crash hits
// these moments seldom: most of them take milliseconds.
type trap struct {
	point trapPoint // 0 = none is set
	down  time.Duration
}

// trapPoint is a moment between a claim's line in the journal and its record in the replicated log.
type trapPoint int

const (
	written       trapPoint = iota + 1 // the journal has the line of a claim or a release, nobody was answered
	answered                           // the claim was answered, the log does not have it
	proposed                           // its entry is in flight: it is committed or lost
	recorded                           // the log has it, the journal still has its line
	lastTrapPoint = recorded
)

// pass kills the server now if a trap is set at this point. The process that passes gets no further. p is nil where it does
// not wait: there the server dies a moment later, while an entry is in flight.
func (w *World) pass(s *server, p *virtual.Proc, point trapPoint) {
	if w.trap.point != point || w.quiet {
		return
	}
	down, delay := w.trap.down, time.Duration(0)
	w.trap = trap{}
	if p == nil {
		delay = w.Between(0, 10*time.Millisecond)
	}
	w.Say("the trap at point %d snaps", point)
	w.trapped[point]++
	w.After(delay, "trapped", func() {
		if w.servers[s.number] != s || s.process.Over {
			return
		}
		w.crash(s)
		w.After(down, "boot", func() { w.recover(s.number) })
	})
	if p != nil {
		p.Sleep(time.Millisecond)
	}
}
