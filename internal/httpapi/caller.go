package httpapi

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/rights"
)

// Resolver says who has a token, and what they may do. It is asked for each request, by any number of goroutines.
type Resolver interface {
	// Resolve returns who has the secret; "" is who shows none. The answer holds for the moment. Errors: Unauthorized, Forbidden.
	Resolve(secret acl.Secret) (*rights.Caller, error)
}

// NeedsHeader is what the request needs, in an answer to who does not have it.
const NeedsHeader = "Drover-Needs"

// ErrDenied is the refusal of who lacks a right, in Nomad's words.
var ErrDenied = drover.Errorf(drover.Forbidden, "Permission denied")

// Who is known without a token of the state.
var (
	everybody = &rights.Caller{ // who calls an agent that knows no tokens
		Token:  &acl.Token{AccessorID: "everybody", Name: "Everybody", Type: acl.ManagementToken},
		Rights: rights.Management(),
	}
	nobody = &rights.Caller{Token: &acl.Token{Name: "Nobody", Type: acl.ClientToken}} // may do nothing
)

// visit is who sent a request, and by what it was let in.
type visit struct {
	resolver Resolver // nil: who calls stays who it is
	need     *Need
	request  *http.Request
	record   *recording
	limit    func(*rights.Caller) error
	secret   acl.Secret // set by who resolves it first
	caller   atomic.Pointer[rights.Caller]

	mu           sync.Mutex
	allowed      []allowed // guarded by mu: what handlers of streams asked for
	asked, about string    // guarded by mu: the object's namespace and name, as the handler knows them
}

// allowed is a capability in a namespace.
type allowed struct {
	namespace  string
	capability policy.Capability
}

func visitOf(ctx context.Context) *visit {
	v, _ := ctx.Value(rights.RequestKey{}).(*visit)
	return v
}

// Caller is nil until it is known.
func (v *visit) Caller() *rights.Caller { return v.caller.Load() }

// CallerOf returns who sent the request: never nil, but who may do nothing where the route's need leaves nothing to its handler. Who lasts
// long calls Again, and asks anew.
func CallerOf(ctx context.Context) *rights.Caller {
	if c := rights.CallerOf(ctx); c != nil {
		return c
	}
	return nobody
}

// Allow decides what OfObject leaves to the handler: whether the request's caller has the capability in the namespace. A stream ends when
// that is no longer so. Errors: ErrDenied.
func Allow(ctx context.Context, namespace string, c policy.Capability) error {
	v := visitOf(ctx)
	if v != nil && v.record != nil {
		v.mu.Lock()
		v.asked = namespace
		v.mu.Unlock()
	}
	if !CallerOf(ctx).Namespace(namespace, c) {
		return ErrDenied
	}
	if v.resolver != nil {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.allowed = append(v.allowed, allowed{namespace, c})
	}
	return nil
}

// Identify resolves a token that came behind the head of its request: the route's need is InHandshake. Errors: Unauthorized, Forbidden;
// ErrDenied for who lacks the right.
func Identify(ctx context.Context, secret string) error {
	v := visitOf(ctx)
	if v == nil {
		return ErrDenied
	}
	if err := v.identify(acl.Secret(secret)); err != nil {
		v.record.failed(err)
		return err
	}
	return unrecorded(v.record.begin())
}

// identify resolves the secret and decides.
func (v *visit) identify(secret acl.Secret) error {
	caller := everybody
	if v.resolver != nil {
		var err error
		if caller, err = v.resolver.Resolve(secret); err != nil {
			return err
		}
	}
	v.record.known(caller)
	if err := v.limit(caller); err != nil {
		return err
	}
	if !v.need.met(caller, v.request) {
		return ErrDenied
	}
	v.secret = secret
	v.caller.Store(caller)
	return nil
}

// Again resolves the token of the request once more: it may be gone, may have ended, or may have other rights. From then on CallerOf says
// who it is. Errors: Forbidden where the request would not be let in any more.
func Again(ctx context.Context) error {
	v := visitOf(ctx)
	if v == nil || v.resolver == nil || v.caller.Load() == nil { // it was decided elsewhere, or is not yet
		return nil
	}
	caller, err := v.resolver.Resolve(v.secret)
	if err == nil && !v.need.met(caller, v.request) {
		err = ErrDenied
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, a := range v.allowed {
		if err == nil && !caller.Namespace(a.namespace, a.capability) {
			err = ErrDenied
		}
	}
	if err != nil {
		caller = nobody
	}
	v.caller.Store(caller)
	return err
}

// decide finds out who sent the request, and refuses it if the route needs more than they may do. The request that it returns knows its
// caller, where a handler may ask for them. What is let in is recorded before it is carried out.
func (e *endpoint) decide(rec *recording, r *http.Request) (*http.Request, error) {
	need := e.need(r)
	if rec == nil {
		return e.admit(need, nil, r)
	}
	r, err := e.admit(need, rec, r)
	if err == nil && !need.late {
		err = unrecorded(rec.begin())
	}
	return r, err
}

// admit is decide without the record.
func (e *endpoint) admit(need *Need, rec *recording, r *http.Request) (*http.Request, error) {
	if need.kind == needNothing && (rec == nil || !rec.logged) {
		return r, nil
	}
	resolver := e.resolverFor(r)
	if need.fixed() && !e.route.Stream && rec == nil && !need.asks(r) {
		caller := everybody
		if resolver != nil {
			var err error
			if caller, err = resolver.Resolve(acl.Secret(e.token(r))); err != nil {
				return r, err
			}
		}
		if err := e.limitCaller(caller); err != nil {
			return r, err
		}
		if !need.met(caller, r) {
			return r, ErrDenied
		}
		return r, nil
	}
	v := &visit{resolver: resolver, need: need, limit: e.limitCaller, record: rec}
	r = r.WithContext(context.WithValue(r.Context(), rights.RequestKey{}, v))
	v.request = r
	if rec != nil {
		rec.visit = v
	}
	if need.late || need.kind == needNothing {
		return r, nil
	}
	return r, v.identify(acl.Secret(e.token(r)))
}

// need is what the request needs.
func (e *endpoint) need(r *http.Request) *Need {
	if e.route.Need.kind != needDepends {
		return &e.route.Need
	}
	need := e.route.Need.of(r)
	if !need.Said() {
		return &Anybody
	}
	return &need
}

// resolverFor says who is asked about the request's token; nil where everybody may do everything.
func (e *endpoint) resolverFor(r *http.Request) Resolver {
	if hop, relayed := HopOf(r.Context()); e.ServersDecide && relayed && hop.Way == FromServer {
		return nil
	}
	return e.Resolver
}

// token is that of the request as the face finds it, else as Nomad's clients send it.
func (e *endpoint) token(r *http.Request) string {
	if f, ok := e.face.(TokenFace); ok {
		return f.Token(r)
	}
	return Token(r)
}

// refuseEarly refuses a request that goes to another agent and is refused whichever that is.
func (e *endpoint) refuseEarly(r *http.Request) error {
	if need := &e.route.Need; need.kind == needNothing || need.late {
		return nil
	}
	if f, ok := e.resolverFor(r).(interface{ Refuses(secret acl.Secret) error }); ok {
		return f.Refuses(acl.Secret(e.token(r)))
	}
	return nil
}

// lasting returns a request whose context ends when its caller may no longer have what it asked for, and what stops the asking.
func (e *endpoint) lasting(r *http.Request) (*http.Request, func()) {
	if v := visitOf(r.Context()); v == nil || v.resolver == nil {
		return r, func() {}
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	var mu sync.Mutex // guards timer
	var timer clock.Timer
	var check func()
	check = func() {
		if err := Again(ctx); err != nil {
			cancel(err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() == nil {
			timer = e.Clock.AfterFunc(e.StreamCheck, check)
		}
	}
	mu.Lock()
	timer = e.Clock.AfterFunc(e.StreamCheck, check)
	mu.Unlock()
	return r.WithContext(ctx), func() {
		cancel(nil)
		mu.Lock()
		defer mu.Unlock()
		timer.Stop()
	}
}
