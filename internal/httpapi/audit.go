package httpapi

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/rights"
)

// RequestIDHeader is the id of a request in its answer and, from another agent or a trusted caller, in the request itself.
const RequestIDHeader = "X-Request-Id"

// secretPaths are where reads show secrets, beside those that revealing capabilities are needed for.
var secretPaths = []string{"/v1/var/", "/v1/vars", "/v1/acl/", "/v1/operator/keyring", "/v1/operator/snapshot", "/v1/agent/pprof"}

// revealing are the capabilities whose reads show what people and programs wrote.
var revealing = []policy.Capability{policy.ReadLogs, policy.ReadFS, policy.ReadFiles}

// acting are the capabilities whose routes run programs, whatever the method.
var acting = []policy.Capability{policy.AllocExec, policy.AllocNodeExec, policy.Execute, policy.ClaimRunner}

// class says what a request of the route is about.
func (e *endpoint) class(r *http.Request, need *Need) audit.Class {
	_, path := splitPattern(e.route.Pattern)
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
	default:
		return audit.Change
	}
	has := func(list []policy.Capability) bool {
		return slices.ContainsFunc(need.capabilities, func(c policy.Capability) bool { return slices.Contains(list, c) })
	}
	switch {
	case has(acting):
		return audit.Change
	case has(revealing), need.kind == needOperator, need.kind == needManagement,
		slices.ContainsFunc(secretPaths, func(p string) bool { return strings.HasPrefix(path, p) }):
		return audit.Secret
	}
	return audit.Read
}

// recording is the record of one request. Nil is that of none.
type recording struct {
	log    *audit.Log
	stream bool
	logged bool // it is recorded though it was let in
	relays bool // another agent decides about it, and records that
	visit  *visit
	token  string

	mu     sync.Mutex  // guards what follows
	event  audit.Event // what both lines have
	caller *rights.Caller
	ended  bool
	err    error // what was answered in place of the answer
}

// recording begins the record of a request, and gives the request its id.
func (e *endpoint) recording(w *response, r *http.Request) *recording {
	if e.Audit == nil || e.route.Pattern == "" { // a method that the path does not have
		return nil
	}
	claimed := r.Header.Get(RequestIDHeader)
	hop, relayed := HopOf(r.Context())
	trusted := relayed || e.Audit.Trusts(r.RemoteAddr)
	request := claimed
	if !trusted || !requestID.MatchString(claimed) {
		request = e.Audit.NewID()
	}
	r.Header.Set(RequestIDHeader, request) // for who it may be relayed to
	w.Header().Set(RequestIDHeader, request)
	need := e.need(r)
	rec := &recording{log: e.Audit, stream: e.route.Stream, token: e.token(r)}
	rec.event = audit.Event{
		Class: e.class(r, need), RequestID: request, Via: hop.From, Method: r.Method, Path: r.URL.Path, Route: e.route.Pattern,
		Namespace: AskedNamespace(r), Object: e.object(r), Remote: r.RemoteAddr, UserAgent: r.UserAgent(), Stream: e.route.Stream,
		Needs: need.words(),
	}
	if claimed != request {
		rec.event.ClaimedID = claimed
	}
	if trusted {
		rec.event.Forwarded = r.Header.Get("X-Forwarded-For")
	}
	rec.logged = rec.event.Class != audit.Read || e.Audit.Sampled()
	return rec
}

// requestID is what an id of a request may be.
var requestID = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,64}$`)

// object is what the path names.
func (e *endpoint) object(r *http.Request) string {
	var parts []string
	for _, name := range e.names {
		if v := r.PathValue(name); v != "" {
			parts = append(parts, v)
		}
	}
	return strings.Join(parts, " ")
}

// pathNames are the names of the parts of a pattern.
func pathNames(pattern string) (out []string) {
	for part := range strings.SplitSeq(pattern, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok && name != "$}" {
			out = append(out, strings.TrimSuffix(strings.TrimSuffix(name, "}"), "..."))
		}
	}
	return out
}

// begin records that the request was let in. Errors: Unavailable if it must be recorded and cannot be: then it is not carried out.
func (c *recording) begin() error {
	if c == nil || !c.logged {
		return nil
	}
	e := c.line(audit.Received)
	e.Allowed = true
	return c.log.Record(&e, true)
}

// end records how the request ended, once.
func (c *recording) end(e *endpoint, status int) {
	if c == nil || c.relays {
		return
	}
	c.mu.Lock()
	ended, err := c.ended, c.err
	c.ended = true
	c.mu.Unlock()
	refused := status == http.StatusForbidden || status == http.StatusUnauthorized || status == http.StatusTooManyRequests
	if ended || !c.logged && !refused {
		return
	}
	line := c.line(audit.Complete)
	line.Status, line.Allowed, line.Took = status, !refused, e.Clock.Now().Sub(c.event.Time)
	if err != nil && (refused || errors.Is(err, errUnrecorded)) {
		line.Reason = Message(err)
	}
	_ = c.log.Record(&line, refused) // that the request was let in lasts already, and who is refused stays so
}

// line returns a line with what is known of the caller and of what it asked for.
func (c *recording) line(stage string) audit.Event {
	c.mu.Lock()
	e, caller := c.event, c.caller
	c.mu.Unlock()
	e.Stage = stage
	if v := c.visit; v != nil {
		v.mu.Lock()
		if v.about != "" {
			e.Object = v.about
		}
		if v.asked != "" {
			e.Namespace = v.asked
		}
		v.mu.Unlock()
	}
	if caller != nil && caller.Token != nil {
		e.AccessorID, e.TokenName, e.TokenType, e.Global = caller.Token.AccessorID, caller.Token.Name, caller.Token.Type, caller.Token.Global
	}
	if c.token != "" { // somebody may have put it where it does not belong
		for _, text := range []*string{&e.Path, &e.Object, &e.UserAgent, &e.ClaimedID} {
			*text = strings.ReplaceAll(*text, c.token, "<token>")
		}
	}
	return e
}

// elsewhere says whether another agent is asked, which decides then, records that, and says the id.
func (c *recording) elsewhere(w *response, relays bool) {
	if c == nil {
		return
	}
	if c.relays = relays; relays {
		w.Header().Del(RequestIDHeader)
		return
	}
	w.Header().Set(RequestIDHeader, c.event.RequestID)
}

// known notes who calls.
func (c *recording) known(caller *rights.Caller) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.caller = caller
}

// failed notes what is answered in place of the answer.
func (c *recording) failed(err error) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

// errUnrecorded is in errors of requests that are not carried out because they cannot be recorded.
var errUnrecorded = errors.New("audit")

// unrecorded is what is answered then.
func unrecorded(err error) error {
	if err == nil {
		return nil
	}
	return drover.Errorf(drover.Unavailable, "%w: %w", errUnrecorded, err)
}

// About names, for the record of the request, what it is about where the path does not say it: the job of a body, a runner that was
// claimed.
func About(ctx context.Context, object string) {
	if v := visitOf(ctx); v != nil {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.about = object
	}
}

// guarded records what the guard refuses.
func (c *Config) guarded(r *http.Request, err error) {
	if c.Audit == nil {
		return
	}
	e := audit.Event{
		Class: audit.Change, Stage: audit.Complete, RequestID: c.Audit.NewID(), Method: r.Method, Path: r.URL.Path, Remote: r.RemoteAddr,
		UserAgent: r.UserAgent(), Namespace: AskedNamespace(r), Reason: Message(err), Status: Status(err), Needs: "a page of this agent",
	}
	_ = c.Audit.Record(&e, false) // it is refused whatever becomes of the line
}
