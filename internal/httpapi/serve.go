package httpapi

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/lifecycle"
	"github.com/drover-project/drover/internal/stack"
)

// Protocols are what a listener with TLS offers, by their names in its handshake. Browsers have many streams open on one connection of
// HTTP/2, and six connections otherwise. Websockets come over HTTP/1.1, which their clients ask for.
var Protocols = []string{"h2", "http/1.1"}

// Server answers on a listener.
type Server struct {
	Handler http.Handler
	Logger  *slog.Logger
	Clock   clock.Clock
	Grace   time.Duration // for requests under way when it is stopped; default 5 s
}

// Serve answers on ln until ctx ends, then closes it: requests get the grace to finish, blocking queries and streams
// see their contexts end at once. It returns nil after a stop that was asked for.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	base, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	srv := &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ConnState:         newWaiting(s.Clock).changed,
		ErrorLog:          slog.NewLogLogger(s.Logger.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return base },
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }() // ends with Shutdown or Close below
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	cancel(lifecycle.ErrShutdown)
	stop, done := s.Clock.WithTimeout(context.WithoutCancel(ctx), cmp.Or(s.Grace, 5*time.Second))
	defer done()
	if err := srv.Shutdown(stop); err != nil {
		_ = srv.Close() // cuts what did not end in time
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// serve answers a request. It makes the stack large while there is little to copy: many requests are the first, or the second, of their
// connection's goroutine, and the collector halves the stacks of those that wait.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	stack.Grow16K()
	s.Handler.ServeHTTP(w, r)
}
