package telemetry

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// LevelTrace is below Debug, as in Nomad.
const LevelTrace = slog.Level(-8)

// ParseLevel reads "trace", "debug", "info", "warn" or "error", in any case.
func ParseLevel(name string) (slog.Level, error) {
	if strings.EqualFold(name, "trace") {
		return LevelTrace, nil
	}
	var l slog.Level
	if err := l.UnmarshalText([]byte(name)); err != nil {
		return 0, fmt.Errorf("unknown log level %q", name)
	}
	return l, nil
}

// tailDepth is how many lines a slow reader may be behind.
const tailDepth = 512

// Ring is a slog.Handler that passes records on, and copies them to whoever watches. Without watchers it costs
// nothing.
type Ring struct {
	next slog.Handler
	with []func(slog.Handler) slog.Handler // WithAttrs and WithGroup calls, to repeat on a watcher's own handler
	hub  *hub
}

type hub struct {
	mu    sync.RWMutex
	tails []*Tail
}

// NewRing returns a handler in front of next.
func NewRing(next slog.Handler) *Ring { return &Ring{next: next, hub: &hub{}} }

// Enabled reports whether next or a watcher wants the level.
func (r *Ring) Enabled(ctx context.Context, level slog.Level) bool {
	return r.next.Enabled(ctx, level) || len(r.hub.wanting(level)) > 0
}

// Handle passes the record on and to the watchers.
func (r *Ring) Handle(ctx context.Context, record slog.Record) error {
	for _, t := range r.hub.wanting(record.Level) {
		t.take(ctx, record, r.with)
	}
	if !r.next.Enabled(ctx, record.Level) {
		return nil
	}
	return r.next.Handle(ctx, record)
}

// WithAttrs returns a handler with the attributes.
func (r *Ring) WithAttrs(attrs []slog.Attr) slog.Handler {
	return r.derive(func(h slog.Handler) slog.Handler { return h.WithAttrs(attrs) })
}

// WithGroup returns a handler with the group.
func (r *Ring) WithGroup(name string) slog.Handler {
	return r.derive(func(h slog.Handler) slog.Handler { return h.WithGroup(name) })
}

// derive is a Ring for WithAttrs and WithGroup: it shares the hub, and applies the change to each reader's handler too.
func (r *Ring) derive(f func(slog.Handler) slog.Handler) *Ring {
	return &Ring{next: f(r.next), with: append(slices.Clone(r.with), f), hub: r.hub}
}

// wanting returns the watchers of a level. The slice is replaced on change, never altered.
func (h *hub) wanting(level slog.Level) []*Tail {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if len(h.tails) == 0 {
		return nil
	}
	var list []*Tail
	for _, t := range h.tails {
		if level >= t.level {
			list = append(list, t)
		}
	}
	return list
}

// Tail is one watcher.
type Tail struct {
	level slog.Level
	json  bool
	lines chan []byte
	hub   *hub

	mu     sync.Mutex
	missed int
}

// Tail begins to watch: records at or above level from now on, as text or JSON lines. Close it.
func (r *Ring) Tail(level slog.Level, asJSON bool) *Tail {
	t := &Tail{level: level, json: asJSON, lines: make(chan []byte, tailDepth), hub: r.hub}
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	r.hub.tails = append(slices.Clone(r.hub.tails), t)
	return t
}

// take formats the record for this watcher; it never waits.
func (t *Tail) take(ctx context.Context, record slog.Record, with []func(slog.Handler) slog.Handler) {
	var buf bytes.Buffer
	if !t.json {
		fmt.Fprintf(&buf, "%s [%s] %s: ", record.Time.Format(lineTime), levelName(record.Level), record.Message)
	}
	h := t.handler(&buf)
	for _, f := range with {
		h = f(h)
	}
	if h.Handle(ctx, record) != nil {
		return // a value that cannot be formatted: the next handler says so
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.missed > 0 {
		note := fmt.Appendf(nil, "[WARN] monitor: %d log lines were dropped: the reader is too slow\n", t.missed)
		select {
		case t.lines <- note:
			t.missed = 0
		default:
		}
	}
	select {
	case t.lines <- buf.Bytes():
	default:
		t.missed++
	}
}

// lineTime is how Nomad's log writes times.
const lineTime = "2006-01-02T15:04:05.000Z07:00"

func levelName(l slog.Level) string {
	if l <= LevelTrace {
		return "TRACE"
	}
	return l.String()
}

// handler writes what follows the head of a text line, or JSON with the names that Nomad's log has.
func (t *Tail) handler(w io.Writer) slog.Handler {
	opts := &slog.HandlerOptions{Level: t.level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) > 0 {
			return a
		}
		level, _ := a.Value.Any().(slog.Level)
		switch a.Key {
		case slog.TimeKey:
			a.Key = "@timestamp"
		case slog.LevelKey:
			a = slog.String("@level", strings.ToLower(levelName(level)))
		case slog.MessageKey:
			a.Key = "@message"
		case "part":
			if t.json {
				a.Key = "@module"
			}
			return a
		default:
			return a
		}
		if !t.json {
			return slog.Attr{} // it stands in the head
		}
		return a
	}}
	if t.json {
		return slog.NewJSONHandler(w, opts)
	}
	return slog.NewTextHandler(w, opts)
}

// Next returns the next line, with its newline. Errors: ctx's.
func (t *Tail) Next(ctx context.Context) ([]byte, error) {
	select {
	case line := <-t.lines:
		return line, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close ends the watching.
func (t *Tail) Close() {
	t.hub.mu.Lock()
	defer t.hub.mu.Unlock()
	t.hub.tails = slices.DeleteFunc(slices.Clone(t.hub.tails), func(o *Tail) bool { return o == t })
}
