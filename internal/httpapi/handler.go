package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"drover"
	"drover/internal/clock"
	"drover/internal/lifecycle"
)

// Config is what all faces share.
type Config struct {
	Logger *slog.Logger // required
	Clock  clock.Clock  // required
	// Authorize decides about a request's token ("" = none sent): nil or drover.Unauthorized / drover.Forbidden.
	// A nil Authorize lets everyone in.
	Authorize func(token string) error
	// MaxBody bounds request bodies in bytes where a route does not say otherwise; default 10 MiB.
	MaxBody int64
	// MaxStreams bounds the answers without an end (logs, events, websockets) that are open at once; default 10,000.
	MaxStreams int
	// Observe, if set, is told of each finished request: route pattern, status, duration.
	Observe func(pattern string, status int, took time.Duration)
}

func (c Config) withDefaults() Config {
	if c.MaxBody == 0 {
		c.MaxBody = 10 << 20
	}
	if c.MaxStreams == 0 {
		c.MaxStreams = 10_000
	}
	return c
}

// Handler joins faces into one handler. It panics if two routes contradict each other, as net/http.ServeMux does: the
// tables are fixed at compile time, and a test builds them all.
func Handler(cfg Config, faces ...Face) http.Handler {
	cfg = cfg.withDefaults()
	mux := http.NewServeMux()
	shared := &shared{Config: cfg, streams: make(chan struct{}, cfg.MaxStreams), gzips: newGzips()}
	for _, face := range faces {
		mountFace(mux, shared, face)
	}
	return mux
}

// shared is the state of all routes of one handler.
type shared struct {
	Config
	streams chan struct{} // holds one element for each open stream
	gzips   *gzips
}

func mountFace(mux *http.ServeMux, s *shared, face Face) {
	allowed := map[string][]string{} // by path: the methods that it answers
	for _, route := range face.Routes() {
		methods, path := splitPattern(route.Pattern)
		ep := &endpoint{shared: s, face: face, route: route}
		if len(methods) == 0 {
			mux.Handle(path, ep)
			allowed[path] = nil
			continue
		}
		for _, m := range methods {
			mux.Handle(m+" "+path, ep)
		}
		if known, ok := allowed[path]; !ok || known != nil {
			allowed[path] = append(known, methods...)
		}
	}
	for path, methods := range allowed {
		if methods != nil {
			mux.Handle(path, methodNotAllowed(s, face, path, methods))
		}
	}
}

// splitPattern takes "PUT,POST /v1/jobs" apart.
func splitPattern(pattern string) (methods []string, path string) {
	before, after, ok := strings.Cut(pattern, " ")
	if !ok {
		return nil, pattern
	}
	return strings.Split(before, ","), after
}

func methodNotAllowed(s *shared, face Face, path string, methods []string) http.Handler {
	allow := strings.Join(methods, ", ")
	return &endpoint{shared: s, face: face, route: Route{Pattern: path, Open: true, Handle: func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Allow", allow)
		return &StatusError{http.StatusMethodNotAllowed, errors.New("Invalid method")} // Nomad's words, which its clients match
	}}}
}

// endpoint is one route with all that surrounds it.
type endpoint struct {
	*shared
	face  Face
	route Route
}

// ServeHTTP runs the route between the shared checks.
func (e *endpoint) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	start := e.Clock.Now()
	w := &response{ResponseWriter: rw}
	defer func() {
		took := e.Clock.Now().Sub(start)
		if e.Observe != nil {
			e.Observe(e.route.Pattern, w.status, took)
		}
		e.Logger.LogAttrs(context.Background(), slog.LevelDebug, "request", slog.String("method", r.Method),
			slog.String("path", r.URL.Path), slog.Int("status", w.status), slog.Duration("took", took))
	}()
	defer e.recovered(w, r)
	if err := e.run(w, r); err != nil {
		e.fail(w, r, err)
	}
}

func (e *endpoint) run(w *response, r *http.Request) error {
	if err := e.authorize(r); err != nil {
		return err
	}
	if e.route.Stream {
		select {
		case e.streams <- struct{}{}:
			defer func() { <-e.streams }()
		default:
			return drover.Errorf(drover.RateLimited, "too many open streams (limit %d)", e.MaxStreams)
		}
	}
	if limit := e.bodyLimit(); limit >= 0 && r.Body != nil {
		r.Body = http.MaxBytesReader(w, r.Body, limit)
	}
	if e.route.Raw != nil {
		e.route.Raw(w, r)
		return nil
	}
	if !e.route.Stream && acceptsGzip(r) {
		defer w.compress(e.gzips)()
	}
	return e.route.Handle(w, r)
}

func (e *endpoint) bodyLimit() int64 {
	if e.route.MaxBody != 0 {
		return e.route.MaxBody
	}
	return e.MaxBody
}

func (e *endpoint) authorize(r *http.Request) error {
	if e.Authorize == nil || e.route.Open {
		return nil
	}
	if f, ok := e.face.(TokenFace); ok {
		return e.Authorize(f.Token(r))
	}
	return e.Authorize(Token(r))
}

// fail writes err, or cuts the connection if the answer has begun.
func (e *endpoint) fail(w *response, r *http.Request, err error) {
	if w.begun() {
		e.Logger.Debug("answer cut short", "path", r.URL.Path, "error", err)
		w.aborted = true
		panic(http.ErrAbortHandler)
	}
	w.reset()
	if drover.CodeOf(err) == drover.Canceled && errors.Is(context.Cause(r.Context()), lifecycle.ErrShutdown) {
		err = drover.Errorf(drover.Unavailable, "shutting down")
	}
	if status := Status(err); status >= 500 && status != http.StatusNotImplemented {
		e.Logger.Warn("request failed", "method", r.Method, "path", r.URL.Path, "status", status, "error", err)
	}
	e.face.WriteError(w, r, err)
}

// recovered turns a panic into 500, so that one bad request does not end the agent.
func (e *endpoint) recovered(w *response, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler { //nolint:errorlint // net/http compares it like this
		panic(p)
	}
	e.Logger.Error("request panicked", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", stack())
	if w.begun() {
		panic(http.ErrAbortHandler)
	}
	w.reset()
	e.face.WriteError(w, r, drover.Errorf(drover.Internal, "internal error; the server's log has the details"))
}
