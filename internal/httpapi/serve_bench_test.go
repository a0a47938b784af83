package httpapi

import (
	"bufio"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
)

// claiming calls as deep as the claim of a runner does, which needs more than 8 KiB of stack.
//
//go:noinline
func claiming(depth int) byte {
	var frame [300]byte
	if frame[depth] = byte(depth); depth == 0 {
		return 0
	}
	return claiming(depth-1) + frame[depth]
}

// BenchmarkFirstRequest is what the first request of a connection costs whose handler calls deep, by a server of ours and by net/http's.
func BenchmarkFirstRequest(b *testing.B) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Sum", string(claiming(24))) })
	ours := &Server{Handler: handler, Logger: quiet(), Clock: clock.Wall{}}
	for name, served := range map[string]http.HandlerFunc{"ours": ours.serve, "net/http": handler} {
		b.Run(name, func(b *testing.B) {
			p := &pipes{make(chan net.Conn), make(chan struct{})}
			srv, done := &http.Server{Handler: served}, make(chan error)
			go func() { done <- srv.Serve(p) }() // ends with Close
			b.ReportAllocs()
			for b.Loop() {
				client := p.dial(b, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
				res, err := http.ReadResponse(bufio.NewReader(client), nil)
				require.NoError(b, err)
				require.Equal(b, http.StatusOK, res.StatusCode)
				require.NoError(b, client.Close())
			}
			require.NoError(b, srv.Close())
			require.ErrorIs(b, <-done, http.ErrServerClosed)
		})
	}
}
