package telemetry

import (
	"log/slog"
	"sync"
	"time"
)

// Seldom keeps what others can cause as often as they like from filling the log: it is told aloud once a minute, else
// for debugging only. The zero value is ready.
type Seldom struct {
	mu    sync.Mutex
	aloud time.Time // guarded by mu: when it was last told aloud
}

// Warn logs a warning, or the same for debugging.
func (s *Seldom) Warn(log *slog.Logger, now time.Time, msg string, args ...any) {
	if s.due(now) {
		log.Warn(msg, args...)
		return
	}
	log.Debug(msg, args...)
}

// due reports whether a minute has passed since it last said so.
func (s *Seldom) due(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.aloud) < time.Minute {
		return false
	}
	s.aloud = now
	return true
}
