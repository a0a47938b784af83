package httpapi

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/lifecycle"
)

// Config is what all faces share.
type Config struct {
	Logger *slog.Logger // required
	Clock  clock.Clock  // required
	// Resolver says who has a request's token ("" = none sent), and what they may do; nil: everybody may do everything.
	Resolver Resolver
	// Open are the groups of routes, of acl.OpenGroups, that need nothing; nil means acl.DefaultOpen.
	Open []string
	// ServersDecide is set for an agent without server: it lets in what a server asks it, which decided about that.
	ServersDecide bool
	// Guard stands before all routes; nil means that of a zero GuardConfig.
	Guard *Guard
	// MaxBody bounds request bodies in bytes where a route does not say otherwise; default 10 MiB.
	MaxBody int64
	// BodyTimeout is how long a request's body may take, besides a second for each 64 KiB; default 1 minute.
	BodyTimeout time.Duration
	// WriteTimeout bounds a single write to a client that does not read, but in streams; default 2 minutes.
	WriteTimeout time.Duration
	// MaxStreams bounds the answers without an end (logs, events, websockets) that are open at once; default 10,000.
	MaxStreams int
	// StreamCheck is how often it is asked again whether the caller of a stream may have it; default 5 seconds.
	StreamCheck time.Duration
	// Relay answers what is for other agents; nil means that all is answered here.
	Relay Relay
	// Audit records decisions; nil: nobody does.
	Audit *audit.Log
	// Limits bound how many requests a token and an address may send; nil: nothing bounds them.
	Limits *Limits
	// Observe, if set, is told of each finished request: route pattern, status, duration.
	Observe func(pattern string, status int, took time.Duration)
}

// withDefaults fills in the zero fields. Streams have a bound of their number, but none of the time that they take.
func (c Config) withDefaults() Config {
	if c.Guard == nil {
		c.Guard = &Guard{}
	}
	if c.Open == nil {
		c.Open = acl.DefaultOpen()
	}
	if c.MaxBody == 0 {
		c.MaxBody = 10 << 20
	}
	if c.BodyTimeout == 0 {
		c.BodyTimeout = time.Minute
	}
	if c.WriteTimeout == 0 {
		c.WriteTimeout = 2 * time.Minute
	}
	if c.StreamCheck == 0 {
		c.StreamCheck = 5 * time.Second
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
	shared := &shared{Config: cfg, streams: make(chan struct{}, cfg.MaxStreams)}
	compress := compressing()
	paths := map[string]*path{}
	for _, face := range faces {
		for _, route := range face.Routes() {
			methods, pattern := splitPattern(route.Pattern)
			exempt := route.Need.Group() == acl.OpenHealth
			route.Need = route.Need.where(cfg.Open)
			if paths[pattern] == nil {
				paths[pattern] = newPath(shared, face, compress)
			}
			ep := newEndpoint(shared, face, route, compress)
			ep.exempt = exempt
			paths[pattern].add(methods, ep)
		}
	}
	mux := http.NewServeMux()
	for pattern, p := range paths {
		mux.Handle(pattern, p)
	}
	return cfg.Guard.handler(mux, cfg.Logger, cfg.Clock, cfg.guarded)
}

// shared is the state of all routes of one handler.
type shared struct {
	Config
	streams chan struct{} // holds one element for each open stream
}

// path answers one path by method. The mux sees paths only: with methods in its patterns a path that is known would
// answer 404 instead of 405 beside a wider one, and overlapping patterns would conflict.
type path struct {
	byMethod map[string]*endpoint // "" = all others
	methods  []string
	others   *endpoint // refuses the methods that the path does not have
}

// newPath returns a path without methods. What it refuses needs no token: the answer 405 tells nothing but the
// methods.
func newPath(s *shared, face Face, compress func(http.Handler) http.HandlerFunc) *path {
	p := &path{byMethod: map[string]*endpoint{}}
	p.others = newEndpoint(s, face, Route{Need: Nothing, Where: Here, Handle: p.notAllowed}, compress)
	return p
}

// add enters an endpoint for its methods. It panics if one is taken, since routes are fixed at compile time.
func (p *path) add(methods []string, ep *endpoint) {
	for _, m := range methods {
		if p.byMethod[m] != nil {
			panic("httpapi: two routes for " + ep.route.Pattern)
		}
		p.byMethod[m] = ep
		p.methods = append(p.methods, m)
	}
}

// ServeHTTP picks the method's endpoint. HEAD is a GET whose body net/http drops.
func (p *path) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ep := p.byMethod[r.Method]
	if ep == nil && r.Method == http.MethodHead {
		ep = p.byMethod[http.MethodGet]
	}
	if ep == nil {
		ep = p.byMethod[""]
	}
	if ep == nil {
		ep = p.others
	}
	ep.ServeHTTP(w, r)
}

// notAllowed answers 405 with the methods that the path has.
func (p *path) notAllowed(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Allow", strings.Join(p.methods, ", "))
	err := errors.New("Invalid method") //nolint:staticcheck // Nomad's words, which its clients match
	return &StatusError{http.StatusMethodNotAllowed, err}
}

// splitPattern takes "PUT,POST /v1/jobs" apart; methods is {""} if there are none.
func splitPattern(pattern string) (methods []string, path string) {
	before, after, ok := strings.Cut(pattern, " ")
	if !ok {
		return []string{""}, pattern
	}
	return strings.Split(before, ","), after
}

// endpoint is one route with all that surrounds it.
type endpoint struct {
	*shared
	http.Handler // serve, with compression around it where the answer may be compressed
	face         Face
	route        Route
	names        []string // of the parts of the path
	compressed   bool
	exempt       bool // Limits do not bound it: who looks whether the agent is well must not be kept out
}

// newEndpoint surrounds a route with the shared checks. Streams and raw handlers are never compressed: a compressor
// would hold their bytes back.
func newEndpoint(s *shared, face Face, route Route, compress func(http.Handler) http.HandlerFunc) *endpoint {
	e := &endpoint{shared: s, face: face, route: route, names: pathNames(route.Pattern), compressed: !route.Stream && route.Raw == nil}
	e.Handler = http.HandlerFunc(e.serve)
	if e.compressed {
		e.Handler = compress(e.Handler)
	}
	return e
}

// serve runs the route between the shared checks.
func (e *endpoint) serve(rw http.ResponseWriter, r *http.Request) {
	start := e.Clock.Now()
	w := &response{ResponseWriter: rw}
	if w.record = e.recording(w, r); w.record != nil {
		w.record.event.Time = start
		if !e.route.Stream {
			w.begins = func(status int) { w.record.end(e, status) }
		}
	}
	if e.route.Stream && r.Method == http.MethodHead { // it would not end: nobody is told that the client has all it wants
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		r, w.finish = r.WithContext(ctx), cancel
	}
	if !e.route.Stream {
		w.bound = func() { _ = http.NewResponseController(rw).SetWriteDeadline(e.Clock.Now().Add(e.WriteTimeout)) }
	}
	defer func() { //nolint:contextcheck // it has the request's
		w.record.end(e, cmp.Or(w.status, http.StatusOK))
		took := e.Clock.Now().Sub(start)
		if e.Observe != nil {
			e.Observe(e.route.Pattern, w.status, took)
		}
		if e.Logger.Enabled(r.Context(), slog.LevelDebug) {
			e.Logger.LogAttrs(r.Context(), slog.LevelDebug, "request", slog.String("method", r.Method),
				slog.String("path", r.URL.Path), slog.Int("status", w.status), slog.Duration("took", took))
		}
	}()
	defer e.recovered(w, r)
	body := r.Body // without its bounds
	if err := e.run(w, r); err != nil && (w.finish == nil || !w.begun()) {
		e.fail(w, r, err)
		e.drain(w, r, body)
	}
}

// run decides about the request before anything else is spent on it, where this agent answers: where another may, that one decides. A
// stream takes one of MaxStreams places for as long as it lasts; none left is RateLimited. A body that is announced as too large is refused
// before it is read.
func (e *endpoint) run(w *response, r *http.Request) (err error) {
	if err := e.limitAddress(r); err != nil {
		return err
	}
	here := e.Relay == nil || e.route.Where.Place == AtHere
	if here {
		r, err = e.decide(w.record, r)
	} else {
		err = e.refuseEarly(r)
	}
	if err != nil {
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
	e.timed(w, r)
	if limit := e.bodyLimit(); limit >= 0 && r.Body != nil {
		if r.ContentLength > limit {
			return tooLargeError(limit)
		}
		r.Body = http.MaxBytesReader(w, r.Body, limit)
		if err := counted(r); err != nil {
			return err
		}
	}
	if !here {
		w.record.elsewhere(w, true)
		if done, err := e.Relay.Elsewhere(w, r, e.route.Where); done || err != nil {
			return err
		}
		w.record.elsewhere(w, false)
		if r, err = e.decide(w.record, r); err != nil {
			return err
		}
	}
	if e.route.Stream {
		var end func()
		r, end = e.lasting(r)
		defer end()
	}
	if e.route.Raw != nil {
		e.route.Raw(w, r)
		return nil
	}
	return e.here(w, r)
}

// bodyLimit is the most bytes of a body; negative means no bound.
func (e *endpoint) bodyLimit() int64 {
	if e.route.MaxBody != 0 {
		return e.route.MaxBody
	}
	return e.MaxBody
}

// fail writes err, or cuts the connection if the answer has begun.
func (e *endpoint) fail(w *response, r *http.Request, err error) {
	if w.begun() {
		e.Logger.Debug("answer cut short", "path", r.URL.Path, "error", err)
		w.record.failed(err)
		panic(http.ErrAbortHandler)
	}
	if drover.CodeOf(err) == drover.Canceled && errors.Is(context.Cause(r.Context()), lifecycle.ErrShutdown) {
		err = drover.Errorf(drover.Unavailable, "shutting down")
	}
	if status := Status(err); status >= 500 && status != http.StatusNotImplemented {
		e.Logger.Warn("request failed", "method", r.Method, "path", r.URL.Path, "status", status, "error", err)
	}
	switch drover.CodeOf(err) {
	case drover.Exhausted, drover.RateLimited, drover.Unavailable, drover.NotLeader:
		w.Header().Set("Retry-After", "1") // seconds
	}
	if often := (*tooOften)(nil); errors.As(err, &often) {
		w.Header().Set("Retry-After", RetryAfter(often.wait))
	}
	if need := e.need(r); errors.Is(err, ErrDenied) && need.kind != needNothing && need.kind != needCaller { // of those the object decides
		w.Header().Set(NeedsHeader, need.words())
	}
	if w.record.failed(err); w.record != nil {
		w.Header().Set(RequestIDHeader, w.record.event.RequestID)
	}
	e.refuse(w, r, err)
}

// refuse writes err in place of the answer, and never compressed: it is short, and may be sent before it ends.
func (e *endpoint) refuse(w *response, r *http.Request, err error) {
	w.reset()
	if e.compressed {
		w.Header().Set(gzhttp.HeaderNoCompression, "1") // gzhttp takes it away
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
	e.Logger.Error("request panicked", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
	if w.begun() {
		panic(http.ErrAbortHandler)
	}
	e.refuse(w, r, drover.Errorf(drover.Internal, "internal error; the server's log has the details"))
}
