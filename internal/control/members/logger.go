package members

import (
	"context"
	"log"
	"log/slog"
	"strings"
)

// newLogger returns a logger for the library, whose lines begin with their level. Its warnings and what it finds worth
// saying become debug: what counts, this package says itself. Its errors stay.
func newLogger(to *slog.Logger) *log.Logger { return log.New(lines{to}, "", 0) }

type lines struct{ to *slog.Logger }

// Write implements io.Writer for one line.
func (l lines) Write(line []byte) (int, error) {
	text, at := strings.TrimSpace(string(line)), slog.LevelDebug
	if rest, ok := strings.CutPrefix(text, "[ERR] "); ok {
		text, at = rest, slog.LevelInfo
	}
	l.to.Log(context.Background(), at, strings.TrimSpace(text), "part", "serf") //nolint:forbidigo // the library has no context
	return len(line), nil
}
