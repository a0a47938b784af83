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
	var lc net.ListenConfig
	begin := c.Now()
	l, err := lc.Listen(ctx, "tcp", address)
	for errors.Is(err, syscall.EADDRINUSE) && c.Now().Sub(begin) < wait && clock.Sleep(ctx, c, look) {
		l, err = lc.Listen(ctx, "tcp", address)
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		flag := "-" + strings.TrimPrefix(key, "ports.") + "-port"
		return nil, drover.Errorf(drover.Unavailable,
			"%s: %w: perhaps by another agent; %s or the key chooses another port, 0 a free one", key, err, flag)
	}
	if err != nil {
		return nil, drover.Errorf(drover.Unavailable, "%s: %w", key, err)
	}
	return l, nil
}
