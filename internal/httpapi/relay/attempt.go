package relay

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/replay"
)

// longRequest is after how long a relay begins to watch whether the answering server is still there.
const longRequest = time.Second

// lateAnswer is how long a server may take to answer after it ceased to be the one to ask.
const lateAnswer = 2 * time.Second

// pause is between attempts, while nothing changes.
const pause = 50 * time.Millisecond

// attempt is one request that is relayed. It is the proxy's transport.
type attempt struct {
	*Relay
	in     *http.Request
	place  httpapi.Place
	key    string
	region string          // "" is this one
	last   bool            // another server sent it on: it goes no further, and waits for nobody
	hold   context.Context // of the waiting, which is shorter than the request
	held   *replay.Body    // nil if there is none

	mu       sync.Mutex // guards what follows
	to       target
	answered bool // its head came
}

// errHere says that the request turned out to be for this server after all.
var errHere = errors.New("this server answers")

// send answers the request at the target. If it returns false, nothing was written.
func (a *attempt) send(client context.Context, w http.ResponseWriter) (done bool, err error) {
	if a.in.Body != nil && a.in.ContentLength != 0 {
		a.held = replay.Keep(a.in.Body)
		_ = http.NewResponseController(w).EnableFullDuplex() // answers may begin before the body ends; where it cannot be they do not
		defer func() {
			if done {
				a.held.End()
			}
		}()
	}
	for {
		failed, given := a.try(client, w)
		switch {
		case errors.Is(failed, errHere):
			if a.held != nil { // it may have been read for another server
				a.in.Body = a.held.Reader()
			}
			return false, nil
		case failed == nil:
			return true, nil
		case given && a.repeatable() && a.hold.Err() == nil: // the server stands still
			switch err := a.again(a.current()); {
			case errors.Is(err, errHere):
				return false, nil
			case err == nil:
				continue
			}
		}
		return true, a.explain(client, failed)
	}
}

// try sends the request, and repeats that for as long as no server can have begun to answer it. given reports that the request
// was given up, because its server was gone while the answer was awaited.
func (a *attempt) try(client context.Context, w http.ResponseWriter) (failed error, givenUp bool) {
	ctx, cancel := context.WithCancelCause(client)
	defer cancel(nil)
	watch := a.clock.AfterFunc(longRequest, func() { a.watch(ctx, cancel) }) // ends with ctx
	defer watch.Stop()
	proxy := &httputil.ReverseProxy{
		Rewrite: a.rewrite, Transport: a, FlushInterval: -1, BufferPool: buffers{},
		ErrorLog:     slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err },
	}
	proxy.ServeHTTP(w, a.in.WithContext(ctx))
	if cause := context.Cause(ctx); failed != nil && cause != nil && client.Err() == nil {
		return cause, true
	}
	return failed, false
}

// repeatable reports whether it does no harm to carry the request out twice.
func (a *attempt) repeatable() bool {
	return a.place == httpapi.AtExecution && a.held == nil && (a.in.Method == http.MethodGet || a.in.Method == http.MethodHead)
}

// explain says why there is no answer.
func (a *attempt) explain(client context.Context, err error) error {
	to := a.current()
	switch code := drover.CodeOf(err); {
	case client.Err() != nil:
		return drover.Errorf(drover.Canceled, "asking server %s: %w", to.Name, context.Cause(client))
	case code == drover.NotLeader, code == drover.Invalid, code == drover.NotImplemented:
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

// RoundTrip sends the request. It sends it again if no server can have begun to answer it, or if carrying it out twice does no
// harm.
func (a *attempt) RoundTrip(out *http.Request) (*http.Response, error) {
	for {
		if out.Body = nil; a.held != nil {
			out.Body = a.held.Reader() // without what the proxy put around it, which a failed attempt closes
		}
		to := a.current()
		out.URL.Host = to.Address
		out.Header.Set(wayHeader, string(to.way))
		res, err := a.transport.RoundTrip(out)
		again := unsent(err) || err != nil && a.repeatable() && out.Context().Err() == nil
		if err == nil && res.Header.Get(httpapi.RefusedHeader) != "" {
			res.Header.Del(httpapi.RefusedHeader)
			if again = a.held.Whole() && a.hold.Err() == nil && to.way == httpapi.FromServer; again {
				_ = res.Body.Close() // it is short
				err = errNoLeader()
			}
		}
		if !again || !a.held.Whole() || a.hold.Err() != nil {
			if err == nil {
				if err = lacking(to.Server, out, res); err != nil {
					return nil, err
				}
			}
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

// again decides once more where the request goes. If that is the same server, it waits a moment first. Errors: errHere; those
// of decide.
func (a *attempt) again(last target) error {
	changed := a.servers.Changed()
	t, err := a.decide(a.hold)
	if err == nil && t.Server == last.Server {
		if !a.pause(a.hold, changed) {
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

// pause waits a moment, or until something changes; false if ctx ended.
func (l *Relay) pause(ctx context.Context, changed <-chan struct{}) bool {
	timer := l.clock.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-changed:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// watch ends a request whose server is gone, or which waits for a server that does not lead any more. Without it a request to a
// server that is stopped, but whose kernel holds the connection, would last for ever.
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
