package logsink

import (
	"io"
	"log/slog"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/telemetry"
)

// Config says where the log goes, beside the output of the process, and in which form.
type Config struct {
	Level  slog.Leveler
	JSON   bool
	Source bool    // lines name the place in the code that they are from
	File   *File   // nil: no file
	Syslog *Syslog // nil: no syslog
}

// Log is the places of a log. Close it.
type Log struct {
	handler slog.Handler
	file    *file  // nil without one
	syslog  *queue // nil without one
}

// Open opens the places. output is that of the process. Errors: Invalid, naming the key.
func Open(cfg Config, output io.Writer, c clock.Clock) (*Log, error) {
	own := cfg.formatted(output)
	l, handlers := &Log{}, []slog.Handler{own}
	if cfg.File != nil {
		f, err := openFile(*cfg.File, cfg.formatted, slog.New(own), c)
		if err != nil {
			return nil, err
		}
		l.file = f
		handlers = append(handlers, cfg.formatted(f))
	}
	if cfg.Syslog != nil {
		to, err := dialSyslog(*cfg.Syslog)
		if err != nil {
			l.Close()
			return nil, err
		}
		l.syslog = newQueue(to, slog.New(own), c)
		handlers = append(handlers, newLeveled(cfg, l.syslog))
	}
	l.handler = handlers[0]
	if len(handlers) > 1 {
		l.handler = slog.NewMultiHandler(handlers...)
	}
	return l, nil
}

// Handler writes to all places.
func (l *Log) Handler() slog.Handler { return l.handler }

// Reopen goes on in the file that is at the path now, which somebody renamed or removed. Errors: those of the disk; then the log
// goes on in the former file.
func (l *Log) Reopen() error {
	if l.file == nil {
		return nil
	}
	return l.file.reopen()
}

// Close writes what waits, and closes the places.
func (l *Log) Close() {
	if l.syslog != nil {
		l.syslog.close()
	}
	if l.file != nil {
		l.file.close()
	}
}

// formatted returns the handler that writes in the configured form.
func (c Config) formatted(w io.Writer) slog.Handler {
	opts := &slog.HandlerOptions{Level: c.Level, AddSource: c.Source, ReplaceAttr: named}
	if c.JSON {
		return slog.NewJSONHandler(w, opts)
	}
	return slog.NewTextHandler(w, opts)
}

// named gives the level below debug its name.
func named(groups []string, a slog.Attr) slog.Attr {
	if a.Key != slog.LevelKey || len(groups) > 0 {
		return a
	}
	if level, ok := a.Value.Any().(slog.Level); ok && level <= telemetry.LevelTrace {
		a.Value = slog.StringValue("TRACE")
	}
	return a
}
