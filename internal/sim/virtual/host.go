package virtual

import "time"

// Host is a process as the world's clock sees it: it may stand still (SIGSTOP) while time goes on, and its clock may be wrong.
//
// A clock that is set while a process runs changes nothing but the numbers that are written down, as Go's times carry the time
// since the process began, too. Virtual times do not, so a step takes hold when the process begins the next time.
type Host struct {
	W       *World
	Stopped bool
	late    []func()      // what was due meanwhile
	ahead   time.Duration // of its clock, when the process began
	began   time.Time
	drift   float64 // seconds that its clock wins in a second
}

// run calls f, at once or when the process goes on.
func (h *Host) run(f func()) {
	if h != nil && h.Stopped {
		h.late = append(h.late, f)
		return
	}
	f()
}

// Now is what its clock says.
func (h *Host) Now(w *World) time.Time {
	if h == nil {
		return w.Now
	}
	return w.Now.Add(h.ahead + time.Duration(h.drift*float64(w.Now.Sub(h.began))))
}

// Lasts is how long it really takes until its clock went on by d.
func (h *Host) Lasts(d time.Duration) time.Duration {
	if h == nil || h.drift == 0 || d > 1000*time.Hour { // for ever
		return d
	}
	return time.Duration(float64(d)/(1+h.drift)) + 1
}

// End ends the process, standing or not: nothing is due any more.
func (h *Host) End() {
	if h != nil {
		h.Stopped, h.late = false, nil
	}
}

// Stop lets the process stand still.
func (h *Host) Stop() { h.Stopped = true }

// GoOn lets it go on: all that was due happens now, in its order.
func (h *Host) GoOn() {
	h.Stopped = false
	late := h.late
	h.late = nil
	for _, f := range late {
		h.W.After(0, "late", func() { h.run(f) })
	}
}

// NewHost is a process that begins, with a clock that is so far ahead and wins so many seconds in a second.
func NewHost(w *World, ahead time.Duration, drift float64) *Host {
	return &Host{W: w, began: w.Now, ahead: ahead, drift: drift}
}
