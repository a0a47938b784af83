package command

import (
	"maps"
	"slices"
	"time"

	"github.com/drover-project/drover"
)

// taskStates writes a map of task states under n; a nil one is left out, an empty one is not.
func (w *writer) taskStates(n int, states map[string]*drover.TaskState) {
	if states != nil && len(states) == 0 {
		w.head(n, 0)
	}
	for _, name := range slices.Sorted(maps.Keys(states)) {
		w.message(n, func(w *writer) {
			w.element(1, name)
			if s := states[name]; s != nil {
				w.message(2, func(w *writer) { w.taskState(s) })
			}
		})
	}
}

func (w *writer) taskState(s *drover.TaskState) {
	w.string(1, s.State)
	w.bool(2, s.Failed)
	w.uint(3, s.Restarts)
	w.time(4, s.LastRestart)
	w.time(5, s.StartedAt)
	w.time(6, s.FinishedAt)
	for _, e := range s.Events {
		w.message(7, func(w *writer) {
			if e != nil {
				w.taskEvent(e)
			}
		})
	}
}

func (w *writer) taskEvent(e *drover.TaskEvent) {
	w.string(1, e.Type)
	w.int(2, e.Time)
	w.string(3, e.DisplayMessage)
	w.details(e.Details)
	w.string(5, e.Message)
	if e.TaskEventLegacy != nil {
		w.legacy(e.TaskEventLegacy)
	}
}

func (w *writer) legacy(e *drover.TaskEventLegacy) {
	w.bool(6, e.FailsTask)
	w.string(7, e.RestartReason)
	w.string(8, e.SetupError)
	w.string(9, e.DriverError)
	w.string(10, e.DriverMessage)
	w.int(11, int64(e.ExitCode))
	w.int(12, int64(e.Signal))
	w.string(13, e.KillReason)
	w.int(14, int64(e.KillTimeout))
	w.string(15, e.KillError)
	w.int(16, e.StartDelay)
	w.string(17, e.DownloadError)
	w.string(18, e.ValidationError)
	w.int(19, e.DiskLimit)
	w.int(20, e.DiskSize)
	w.string(21, e.FailedSibling)
	w.string(22, e.VaultError)
	w.string(23, e.TaskSignalReason)
	w.string(24, e.TaskSignal)
	w.string(25, e.GenericSource)
}

// details writes keys and values in turn, as 4 and 26; 27 is the empty map.
func (w *writer) details(m map[string]string) {
	w.bool(27, m != nil && len(m) == 0)
	for _, k := range slices.Sorted(maps.Keys(m)) {
		w.element(4, k)
		w.element(26, m[k])
	}
}

func (r *reader) taskState(into *map[string]*drover.TaskState) {
	if *into == nil {
		*into = map[string]*drover.TaskState{}
	}
	if len(r.bytes) == 0 {
		return
	}
	var name string
	var state *drover.TaskState
	x := r.inner()
	for x.next() {
		switch x.n {
		case 1:
			name = x.shared()
		case 2:
			y := x.inner()
			state = y.state()
			x.done(&y)
		}
	}
	r.done(&x)
	(*into)[name] = state
}

// state reads a task's state. Its events lie side by side: each by itself they would be most of the objects that the collector of
// garbage has to look at in a state of a million allocations.
func (r *reader) state() *drover.TaskState {
	s := &drover.TaskState{}
	var events []drover.TaskEvent
	if n := r.count(7); n > 0 {
		events, s.Events = make([]drover.TaskEvent, n), make([]*drover.TaskEvent, 0, n)
	}
	for r.next() {
		switch r.n {
		case 1:
			s.State = r.shared()
		case 2:
			s.Failed = r.bool()
		case 3:
			s.Restarts = r.value
		case 4:
			s.LastRestart = r.time()
		case 5:
			s.StartedAt = r.time()
		case 6:
			s.FinishedAt = r.time()
		case 7:
			x, e := r.inner(), &events[len(s.Events)]
			x.event(e)
			s.Events = append(s.Events, e)
			r.done(&x)
		}
	}
	return s
}

func (r *reader) event(e *drover.TaskEvent) {
	key := ""
	for r.next() {
		switch r.n {
		case 1:
			e.Type = r.shared()
		case 2:
			e.Time = r.int()
		case 3:
			e.DisplayMessage = r.shared()
		case 4:
			key = r.shared()
		case 5:
			e.Message = r.shared()
		case 26:
			if len(e.Details) == 0 {
				e.Details = map[string]string{}
			}
			e.Details[key] = r.shared()
		case 27:
			e.Details = r.strings.none()
		default:
			r.legacy(e)
		}
	}
}

func (r *reader) legacy(of *drover.TaskEvent) {
	if of.TaskEventLegacy == nil {
		of.TaskEventLegacy = &drover.TaskEventLegacy{}
	}
	e := of.TaskEventLegacy
	switch r.n {
	case 6:
		e.FailsTask = r.bool()
	case 11:
		e.ExitCode = int(r.int())
	case 12:
		e.Signal = int(r.int())
	case 14:
		e.KillTimeout = time.Duration(r.int())
	case 16:
		e.StartDelay = r.int()
	case 19:
		e.DiskLimit = r.int()
	case 20:
		e.DiskSize = r.int()
	default:
		if s := textOf(e, r.n); s != nil {
			*s = r.shared()
		}
	}
}

// textOf returns where the event's text of that number is.
func textOf(e *drover.TaskEventLegacy, n int) *string {
	switch n {
	case 7:
		return &e.RestartReason
	case 8:
		return &e.SetupError
	case 9:
		return &e.DriverError
	case 10:
		return &e.DriverMessage
	case 13:
		return &e.KillReason
	case 15:
		return &e.KillError
	case 17:
		return &e.DownloadError
	case 18:
		return &e.ValidationError
	case 21:
		return &e.FailedSibling
	case 22:
		return &e.VaultError
	case 23:
		return &e.TaskSignalReason
	case 24:
		return &e.TaskSignal
	case 25:
		return &e.GenericSource
	}
	return nil
}
