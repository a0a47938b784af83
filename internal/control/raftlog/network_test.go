package raftlog

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// tcp is a Network without proof of who is who.
type tcp struct{ net.Listener }

func (tcp) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address)
}

func network(t testing.TB) Network {
	t.Helper()
	return networkAt(t, "127.0.0.1:0")
}

func networkAt(t testing.TB, address string) Network {
	t.Helper()
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return tcp{l}
}
