package logsink

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

// Syslog is the machine's syslog.
type Syslog struct {
	Facility string // default LOCAL0
	Address  string // path of its socket; "" looks where it usually is
}

// tag is what lines of the agent are called by in a syslog.
const tag = "drover"

// facilities are the names that syslog has for who writes, in the order of their numbers.
var facilities = []string{
	"KERN", "USER", "MAIL", "DAEMON", "AUTH", "SYSLOG", "LPR", "NEWS", "UUCP", "CRON", "AUTHPRIV", "FTP",
	"", "", "", "", "LOCAL0", "LOCAL1", "LOCAL2", "LOCAL3", "LOCAL4", "LOCAL5", "LOCAL6", "LOCAL7",
}

// Facility is the number of a facility, in any case. Errors: Invalid.
func Facility(name string) (int, error) {
	for i, known := range facilities {
		if known != "" && strings.EqualFold(known, name) {
			return i, nil
		}
	}
	return 0, drover.Errorf(drover.Invalid,
		"there is no facility that is called %q: USER, DAEMON, AUTH, AUTHPRIV, LOCAL0 to LOCAL7, and the others of syslog", name)
}

// daemon is a syslog that takes one line at a level.
type daemon interface {
	send(level slog.Level, line string) error
	close()
}

const (
	waiting  = 4096        // lines that may wait for the syslog
	farewell = time.Second // for what waits when the agent ends
)

// message is a line on its way.
type message struct {
	level slog.Level
	line  string
}

// queue takes lines for a syslog without waiting for it.
type queue struct {
	to     daemon
	output *slog.Logger
	clock  clock.Clock
	lines  chan message
	ended  chan struct{}

	mu     sync.Mutex
	closed bool // guarded by mu
	lost   int  // guarded by mu: lines that it did not take since the last that it took
}

// newQueue begins to send.
func newQueue(to daemon, output *slog.Logger, c clock.Clock) *queue {
	q := &queue{to: to, output: output, clock: c, lines: make(chan message, waiting), ended: make(chan struct{})}
	go q.run() // ends when close closed the lines
	return q
}

// put takes a line, or loses it when too many wait.
func (q *queue) put(level slog.Level, line string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	select {
	case q.lines <- message{level, line}:
	default:
		q.miss(drover.Errorf(drover.Unavailable, "%d lines wait for it", waiting))
	}
}

// miss counts a line that was lost, with mu held, and says so of the first.
func (q *queue) miss(err error) {
	if q.lost++; q.lost == 1 {
		q.output.Error("the syslog takes no lines: the agent goes on, and tries again", "key", "enable_syslog", "error", err)
	}
}

func (q *queue) run() {
	defer close(q.ended)
	for m := range q.lines {
		err := q.to.send(m.level, m.line)
		q.mu.Lock()
		switch {
		case err != nil:
			q.miss(err)
		case q.lost > 0:
			q.output.Info("the syslog takes lines again", "missing", q.lost)
			q.lost = 0
		}
		q.mu.Unlock()
	}
}

// close sends what waits, but does not wait long for a syslog that stands still.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	close(q.lines)
	q.mu.Unlock()
	timer := q.clock.NewTimer(farewell)
	defer timer.Stop()
	select {
	case <-q.ended:
		q.to.close()
	case <-timer.C(): // run ends with the process
	}
}

// leveled formats records as text without a time, which syslog gives them, and sends them with their level.
type leveled struct {
	queue *queue
	text  slog.Handler
	line  *pending
}

// pending is the record that is being formatted.
type pending struct {
	mu    sync.Mutex
	queue *queue
	level slog.Level // guarded by mu
}

// Write takes the formatted record.
func (p *pending) Write(line []byte) (int, error) {
	p.queue.put(p.level, strings.TrimSuffix(string(line), "\n"))
	return len(line), nil
}

func newLeveled(cfg Config, q *queue) slog.Handler {
	line := &pending{queue: q}
	opts := &slog.HandlerOptions{Level: cfg.Level, AddSource: cfg.Source, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return named(groups, a)
	}}
	if cfg.JSON {
		return &leveled{queue: q, line: line, text: slog.NewJSONHandler(line, opts)}
	}
	return &leveled{queue: q, line: line, text: slog.NewTextHandler(line, opts)}
}

// Enabled implements slog.Handler.
func (l *leveled) Enabled(ctx context.Context, level slog.Level) bool {
	return l.text.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (l *leveled) Handle(ctx context.Context, r slog.Record) error {
	l.line.mu.Lock()
	defer l.line.mu.Unlock()
	l.line.level = r.Level
	return l.text.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (l *leveled) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &leveled{queue: l.queue, line: l.line, text: l.text.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (l *leveled) WithGroup(name string) slog.Handler {
	return &leveled{queue: l.queue, line: l.line, text: l.text.WithGroup(name)}
}
