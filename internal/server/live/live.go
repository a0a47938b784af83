package live

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/telemetry"
)

// Settings are what can be replaced while the agent runs.
type Settings struct {
	HTTP, RPC *TLS // nil for clear text

	own     *config.TLS // that the agent made itself; nil: the configuration says
	read    func() (*config.Agent, error)
	level   *slog.LevelVar
	headers atomic.Pointer[map[string]string]
	mu      sync.Mutex // one reload at a time
}

// New takes the settings of the first configuration. read reads it again, nil if that cannot be; level is the log's, nil if it is
// fixed. Errors: Invalid for certificates.
func New(cfg *config.Agent, read func() (*config.Agent, error), level *slog.LevelVar) (*Settings, error) {
	s := &Settings{read: read, level: level}
	var err error
	if !cfg.AutoTLS() { // else Own will say
		if s.HTTP, err = Open(cfg.TLS, "http"); err != nil {
			return nil, err
		}
		if s.RPC, err = Open(cfg.TLS, "rpc"); err != nil {
			return nil, err
		}
	}
	headers := cfg.Headers
	s.headers.Store(&headers)
	return s, nil
}

// Own has the agent use certificates that it made itself, in place of the configuration's. It is called before anybody uses the settings.
// Errors: Invalid.
func (s *Settings) Own(own *config.TLS) (err error) {
	s.own = own
	if s.HTTP, err = Open(own, "http"); err != nil {
		return err
	}
	s.RPC, err = Open(own, "rpc")
	return err
}

// TakeOwn takes up certificates that the agent renewed itself. Errors: Invalid.
func (s *Settings) TakeOwn() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range []*TLS{s.HTTP, s.RPC} {
		if t == nil {
			continue
		}
		if err := t.Take(s.own); err != nil {
			return err
		}
	}
	return nil
}

// Reload reads the configuration and takes up what can be. On an error all stays as it was. Errors: Invalid; NotImplemented.
func (s *Settings) Reload() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.read == nil {
		return drover.Errorf(drover.NotImplemented, "the agent has no configuration that it could read again")
	}
	cfg, err := s.read()
	if err != nil {
		return err
	}
	level, err := telemetry.ParseLevel(cfg.LogLevel)
	if err != nil {
		return drover.Errorf(drover.Invalid, "log_level: %w", err)
	}
	files := cfg.TLS
	if s.own != nil {
		if files = s.own; !cfg.AutoTLS() {
			return drover.Errorf(drover.Invalid, "tls: other certificates than the server's own need a restart")
		}
	}
	next := map[*TLS]*tls.Config{}
	for kind, t := range map[string]*TLS{"http": s.HTTP, "rpc": s.RPC} {
		loaded, err := load(files, kind)
		switch {
		case err != nil:
			return err
		case (loaded == nil) != (t == nil):
			return drover.Errorf(drover.Invalid, "tls.%s: switching TLS on or off needs a restart", kind)
		case t != nil:
			next[t] = loaded
		}
	}
	for t, loaded := range next {
		t.current.Store(loaded)
	}
	if s.level != nil {
		s.level.Set(level)
	}
	headers := cfg.Headers
	s.headers.Store(&headers)
	return nil
}

// Headers puts the configured headers into each answer of the handler.
func (s *Settings) Headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for key, value := range *s.headers.Load() {
			w.Header().Set(key, value)
		}
		next.ServeHTTP(w, r)
	})
}
