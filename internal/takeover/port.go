package takeover

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

// Listen listens at a TCP address. key is the configuration key or flag that chose it, as errors name it. Errors:
// Unavailable, which says for a port in use how to choose another one.
func Listen(ctx context.Context, address, key string, c clock.Clock) (net.Listener, error) {
	return ListenAs(ctx, net.ListenConfig{}, address, key, c)
}

// ListenAs is Listen with more to say of the socket.
func ListenAs(ctx context.Context, lc net.ListenConfig, address, key string, c clock.Clock) (net.Listener, error) {
	begin := c.Now()
	l, err := lc.Listen(ctx, "tcp", address)
	for errors.Is(err, syscall.EADDRINUSE) && c.Now().Sub(begin) < wait && clock.Sleep(ctx, c, look) {
		l, err = lc.Listen(ctx, "tcp", address)
	}
	if name, has := strings.CutPrefix(key, "ports."); has && errors.Is(err, syscall.EADDRINUSE) {
		return nil, drover.Errorf(drover.Unavailable,
			"%s: %w: perhaps by another agent; -%s-port or the key chooses another port, 0 a free one", key, err, name)
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, drover.Errorf(drover.Unavailable, "%s: %w: perhaps by another agent, or a program that listens on all addresses", key, err)
	}
	if err != nil {
		return nil, drover.Errorf(drover.Unavailable, "%s: %w", key, err)
	}
	return l, nil
}
