package sim

import "time"

// host is a process as the world's clock sees it: it may stand still (SIGSTOP) while time goes on, and its clock may be wrong.
//
// A clock that is set while a process runs changes nothing but the numbers that are written down, as Go's times carry the time
// since the process began, too. Virtual times do not, so a step takes hold when the process begins the next time.
type host struct {
	w       *World
	stopped bool
	late    []func()      // what was due meanwhile
	ahead   time.Duration // of its clock, when the process began
	began   time.Time
	drift   float64 // seconds that its clock wins in a second
}

// run calls f, at once or when the process goes on.
func (h *host) run(f func()) {
	if h != nil && h.stopped {
		h.late = append(h.late, f)
		return
	}
	f()
}

// now is what its clock says.
func (h *host) now(w *World) time.Time {
	if h == nil {
		return w.now
	}
	return w.now.Add(h.ahead + time.Duration(h.drift*float64(w.now.Sub(h.began))))
}

// lasts is how long it really takes until its clock went on by d.
func (h *host) lasts(d time.Duration) time.Duration {
	if h == nil || h.drift == 0 || d > 1000*time.Hour { // for ever
		return d
	}
	return time.Duration(float64(d)/(1+h.drift)) + 1
}

// end ends the process, standing or not: nothing is due any more.
func (h *host) end() {
	if h != nil {
		h.stopped, h.late = false, nil
	}
}

// newHost is a server's process that begins: with a clock that was set meanwhile, and goes a little wrong.
func (w *World) newHost(number int) *host {
	return &host{w: w, began: w.now, ahead: w.steps[number], drift: 0.05 * (2*w.rng.Float64() - 1)}
}

// stop lets the process stand still.
func (h *host) stop() { h.stopped = true }

// goOn lets it go on: all that was due happens now, in its order.
func (h *host) goOn() {
	h.stopped = false
	late := h.late
	h.late = nil
	for _, f := range late {
		h.w.after(0, "late", func() { h.run(f) })
	}
}
