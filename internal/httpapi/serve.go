package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Serve answers on ln until ctx ends, then closes: requests get grace to finish, streams see their contexts end at
// once. It returns nil after a stop that was asked for.
func Serve(ctx context.Context, ln net.Listener, h http.Handler, log *slog.Logger, grace time.Duration) error {
	base, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return base },
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }() // ends with srv.Shutdown or Close below
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	cancel(context.Cause(ctx)) // blocking queries and streams end now, not after the grace
	stop, done := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer done()
	if err := srv.Shutdown(stop); err != nil {
		_ = srv.Close() // cuts what did not end in time
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
