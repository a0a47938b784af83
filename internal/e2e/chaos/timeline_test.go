package chaos

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// timeline is what happened, and what must not have.
type timeline struct {
	began time.Time

	mu       sync.Mutex // guards what follows
	lines    []string
	windows  []window
	breaches []string // of promises
	missing  []string // what is not promised yet
	figures  []string
}

// window is how long a fault was there.
type window struct {
	hit
	from, to time.Duration // to is when it was healed; 0 while it is there
}

// harmless reports whether the fault excuses nothing: work goes on whatever the date is.
func (w window) harmless() bool { return w.kind == serverDate || w.kind == nodeDate }

func (l *timeline) now() time.Duration { return time.Since(l.began) }

func (l *timeline) say(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf("%7.2f s  %s", l.now().Seconds(), fmt.Sprintf(format, args...)))
}

// breach notes what must not be, if it is promised; else it is only told.
func (l *timeline) breach(promised bool, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	l.say("BREACH (promised: %v): %s", promised, text)
	l.mu.Lock()
	defer l.mu.Unlock()
	if promised {
		l.breaches = append(l.breaches, text)
	} else {
		l.missing = append(l.missing, text)
	}
}

func (l *timeline) figure(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.figures = append(l.figures, fmt.Sprintf(format, args...))
}

// begin notes that a fault is there; the function that it returns, that it was healed.
func (l *timeline) begin(h hit) (end func()) {
	l.say("%s", h)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.windows = append(l.windows, window{hit: h, from: l.now()})
	i := len(l.windows) - 1
	return func() {
		l.say("  healed")
		l.mu.Lock()
		defer l.mu.Unlock()
		l.windows[i].to = l.now()
	}
}

// faulted reports whether the node was struck at all between the times, or a little before.
func (l *timeline) faulted(node string, from, to time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.windows {
		if w.harmless() || w.from > to || w.to != 0 && w.to+settle < from {
			continue
		}
		if slices.ContainsFunc(w.nodes, func(n *host) bool { return n.name == node }) {
			return true
		}
	}
	return false
}

// struck reports whether a fault hit the server, or all, then.
func (l *timeline) struck(server string, at time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.windows, func(w window) bool {
		return !w.harmless() && w.from-time.Second <= at && (w.to == 0 || at <= w.to+time.Second) &&
			slices.ContainsFunc(w.servers, func(s *host) bool { return s.name == server })
	})
}

// settle is for how long after its end a fault may still be felt.
const settle = 20 * time.Second

// text is all that is told of a run.
func (l *timeline) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return "\n" + strings.Join(l.lines, "\n") + "\n"
}

// few is the beginning of a list, for people.
func few(list []string) string {
	const most = 12
	if len(list) > most {
		return strings.Join(list[:most], "\n  ") + fmt.Sprintf("\n  … and %d more", len(list)-most)
	}
	return strings.Join(list, "\n  ")
}
