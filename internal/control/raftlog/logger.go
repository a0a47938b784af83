package raftlog

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"

	"github.com/drover-project/drover/internal/clock"
)

// logger is an hclog.Logger that writes to slog. Raft's chatter (info) becomes
// debug and its warnings, which every start has, info: it is ours to say what matters. What it says of what is normal in a
// cluster becomes debug, too, and that a server is not reached is told in a bounded number of lines.
type logger struct {
	to      *slog.Logger
	name    string
	args    []any
	last    *atomic.Pointer[string] // error logged, of all that were derived from one
	outages *outages                // of all that were derived from one
}

func newLogger(to *slog.Logger, c clock.Clock) *logger {
	if to == nil {
		to = slog.New(slog.DiscardHandler)
	}
	return &logger{to: to, last: &atomic.Pointer[string]{}, outages: &outages{clock: c}}
}

// level maps hclog's levels.
func level(l hclog.Level) slog.Level {
	switch {
	case l >= hclog.Error:
		return slog.LevelError
	case l == hclog.Warn:
		return slog.LevelInfo
	case l <= hclog.Trace:
		return slog.LevelDebug - 4
	}
	return slog.LevelDebug
}

// lastError returns the last error logged: raft returns less than it logs.
func (l *logger) lastError() string {
	if s := l.last.Load(); s != nil {
		return *s
	}
	return ""
}

func (l *logger) Log(at hclog.Level, msg string, args ...any) {
	if at >= hclog.Error {
		l.last.Store(new(strings.TrimSpace(msg + " " + fmt.Sprint(args...))))
	}
	to := level(at)
	switch {
	case unreached[msg]:
		if line, tell := l.outages.note(msg, args); tell {
			l.to.Warn("a server of the log is not reached; it is told again each minute", line...)
			return
		}
		to = slog.LevelDebug
	case normal[msg], passing[msg] && ofAConnection(args):
		to = slog.LevelDebug
	}
	if l.is(to) {
		l.to.Log(noContext(), to, msg, args...)
	}
}

func (l *logger) Trace(msg string, args ...any) { l.Log(hclog.Trace, msg, args...) }
func (l *logger) Debug(msg string, args ...any) { l.Log(hclog.Debug, msg, args...) }
func (l *logger) Info(msg string, args ...any)  { l.Log(hclog.Info, msg, args...) }
func (l *logger) Warn(msg string, args ...any)  { l.Log(hclog.Warn, msg, args...) }
func (l *logger) Error(msg string, args ...any) { l.Log(hclog.Error, msg, args...) }

func (l *logger) is(at slog.Level) bool { return l.to.Enabled(noContext(), at) }

// noContext is what raft logs in: its interface has none.
func noContext() context.Context { return context.Background() } //nolint:forbidigo // see above

func (l *logger) IsTrace() bool { return l.is(level(hclog.Trace)) }
func (l *logger) IsDebug() bool { return l.is(level(hclog.Debug)) }
func (l *logger) IsInfo() bool  { return l.is(level(hclog.Info)) }
func (l *logger) IsWarn() bool  { return l.is(level(hclog.Warn)) }
func (l *logger) IsError() bool { return l.is(level(hclog.Error)) }

func (l *logger) ImpliedArgs() []any { return l.args }

func (l *logger) With(args ...any) hclog.Logger {
	return &logger{l.to.With(args...), l.name, append(slices.Clone(l.args), args...), l.last, l.outages}
}

func (l *logger) Name() string { return l.name }

func (l *logger) Named(name string) hclog.Logger {
	return l.ResetNamed(strings.TrimPrefix(l.name+"."+name, "."))
}

func (l *logger) ResetNamed(name string) hclog.Logger {
	return &logger{l.to, name, l.args, l.last, l.outages}
}
func (l *logger) SetLevel(hclog.Level) {}

func (l *logger) GetLevel() hclog.Level {
	for _, at := range []hclog.Level{hclog.Trace, hclog.Debug, hclog.Warn} {
		if l.is(level(at)) {
			return at
		}
	}
	return hclog.Error
}

func (l *logger) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return log.New(l.StandardWriter(nil), "", 0)
}

func (l *logger) StandardWriter(*hclog.StandardLoggerOptions) io.Writer { return lineWriter{l} }

type lineWriter struct{ l *logger }

func (w lineWriter) Write(p []byte) (int, error) {
	w.l.Debug(strings.TrimSpace(string(p)))
	return len(p), nil
}
