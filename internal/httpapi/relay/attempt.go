package relay

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi"
)

// longRequest is after what time it is watched whether the server that answers is still there.
const longRequest = time.Second

// lateAnswer is how long a server may take to answer after it ceased to be the one to ask.
const lateAnswer = 2 * time.Second

// pause is between attempts, while nothing changes.
const pause = 50 * time.Millisecond

// attempt is one request that is relayed. It is the proxy's transport.
type attempt struct {
	*Relay
	in    *http.Request
	place httpapi.Place
	key   string
	hold  context.Context //nolint:containedctx // of the waiting, which is shorter than the request
	held  *body           // nil if there is none

	mu       sync.Mutex // guards what follows
	to       target
	answered bool // its head came
}

// errHere says that the request turned out to be for this server after all.
var errHere = errors.New("this server answers")

// send answers the request at the target. Nothing was written where it was not done.
func (a *attempt) send(client context.Context, w http.ResponseWriter) (done bool, err error) {
	ctx, cancel := context.WithCancelCause(client)
	defer cancel(nil)
	watch := a.clock.AfterFunc(longRequest, func() { a.watch(ctx, cancel) }) // ends with ctx
	defer watch.Stop()
	var failed error
	proxy := &httputil.ReverseProxy{
		Rewrite: a.rewrite, Transport: a, FlushInterval: -1, BufferPool: buffers{},
		ErrorLog:     slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err },
	}
	out := a.in.WithContext(ctx)
	if a.in.Body != nil && a.in.ContentLength != 0 {
		a.held = &body{body: a.in.Body}
		out.Body = a.held
		_ = http.NewResponseController(w).EnableFullDuplex() // answers may begin before the body ends; where it cannot be they do not
		defer func() {
			if done {
				a.held.end()
			}
		}()
	}
	proxy.ServeHTTP(w, out)
	if errors.Is(failed, errHere) {
		return false, nil
	}
	if failed == nil {
		return true, nil
	}
	if cause := context.Cause(ctx); cause != nil && client.Err() == nil {
		failed = cause
	}
	return true, a.explain(client, failed)
}

// explain says why there is no answer.
func (a *attempt) explain(client context.Context, err error) error {
	to := a.current()
	switch code := drover.CodeOf(err); {
	case client.Err() != nil:
		return drover.Errorf(drover.Canceled, "asking server %s: %w", to.Name, context.Cause(client))
	case code == drover.NotLeader, code == drover.Invalid:
		return err
	case unsent(err) && to.leads:
		a.log.Debug("the leader is not reached", "server", to.Name, "address", to.Address, "error", err)
		return errNoLeader()
	}
	return drover.Errorf(drover.Unavailable, "asking server %s at %s: %w", to.Name, to.Address, err)
}

func (a *attempt) current() target {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.to
}

// RoundTrip sends the request, and again where nobody can have begun to answer it.
func (a *attempt) RoundTrip(out *http.Request) (*http.Response, error) {
	if out.Body = nil; a.held != nil {
		out.Body = a.held // without what the proxy put around it, which a failed attempt closes
	}
	for {
		to := a.current()
		out.URL.Host = to.Address
		out.Header.Set(wayHeader, string(to.way))
		res, err := a.transport.RoundTrip(out)
		again := unsent(err)
		if err == nil && res.Header.Get(refusedHeader) != "" {
			res.Header.Del(refusedHeader)
			if again = a.held == nil && to.way == httpapi.FromServer; again {
				_ = res.Body.Close() // it is short
				err = errNoLeader()
			}
		}
		if !again || a.held.touched() || a.hold.Err() != nil {
			a.mu.Lock()
			a.answered = err == nil
			a.mu.Unlock()
			return res, err
		}
		if e := a.again(to); e != nil {
			if !unsent(err) || errors.Is(e, errHere) {
				err = e
			}
			return nil, err
		}
	}
}

// again decides once more where the request goes, a moment later if that is where it went. Errors: errHere; those of decide.
func (a *attempt) again(last target) error {
	changed := a.servers.Changed()
	t, err := a.decide(a.hold)
	if err == nil && t.Server == last.Server {
		timer := a.clock.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C():
		case <-changed:
		case <-a.hold.Done():
			return errNoLeader()
		}
		t, err = a.decide(a.hold)
	}
	if err == nil && t.here {
		err = errHere
	}
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.to = t
	return nil
}

// watch ends a request whose server is gone, or which waits for the answer of a server that leads no more. Without it a
// request to a server that is stopped, but whose kernel holds the connection, would last for ever.
func (a *attempt) watch(ctx context.Context, cancel context.CancelCauseFunc) {
	for {
		changed := a.servers.Changed()
		if a.lost() != nil {
			if !clock.Sleep(ctx, a.clock, lateAnswer) {
				return
			}
			if err := a.lost(); err != nil {
				cancel(err)
				return
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// lost says why no answer is to be expected; nil if one is.
func (a *attempt) lost() error {
	a.mu.Lock()
	to, answered := a.to, a.answered
	a.mu.Unlock()
	if s, ok := a.servers.ByID(to.ID); !ok || !s.Alive {
		return drover.Errorf(drover.Unavailable, "the server is gone: it is not known whether it carried the request out")
	}
	if leader, ok := a.servers.Leader(); to.leads && !answered && ok && leader.ID != to.ID {
		return drover.Errorf(drover.Unavailable,
			"the server did not answer, and another leads now: it is not known whether it carried the request out")
	}
	return nil
}

// body is a request's body that stays open until the request is answered: who fails to send it must not close it.
type body struct {
	body io.ReadCloser

	mu    sync.Mutex // guards what follows
	read  bool
	ended bool
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	b.read = true
	ended := b.ended
	b.mu.Unlock()
	if ended {
		return 0, http.ErrBodyReadAfterClose
	}
	return b.body.Read(p)
}

// Close does nothing: end does.
func (b *body) Close() error { return nil }

// touched reports whether some of it may have been sent. None of no body was.
func (b *body) touched() bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.read
}

func (b *body) end() {
	b.mu.Lock()
	b.ended = true
	b.mu.Unlock()
	_ = b.body.Close() // it was answered
}
