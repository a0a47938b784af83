package httpapi

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// pipes is a listener whose connections lie in memory, so that a bubble's time is theirs too.
type pipes struct {
	dialled chan net.Conn
	closed  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.dialled:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// dial connects and sends a request, or its beginning.
func (p *pipes) dial(t testing.TB, request string) net.Conn {
	t.Helper()
	near, far := net.Pipe()
	p.dialled <- far
	_, err := io.WriteString(near, request)
	require.NoError(t, err)
	return near
}

// It runs in a bubble: with limits of 50 ms of the machine's time it failed on a busy machine. There the server waited longer than
// that between setting a deadline and reading what was there already.
func TestSlowPeersAreLetGo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig()
		cfg.BodyTimeout, cfg.WriteTimeout, cfg.MaxBody = 10*time.Second, 20*time.Second, 1<<10
		wrote, ctxErr := make(chan error, 1), make(chan error, 1)
		srv := &http.Server{Handler: Handler(cfg, testFace{
			{Pattern: "POST /echo", Handle: func(w http.ResponseWriter, r *http.Request) error {
				var v any
				if err := DecodeJSON(r, &v); err != nil {
					return err
				}
				return WriteJSON(w, r, http.StatusOK, v)
			}},
			{Pattern: "POST /long", Handle: func(w http.ResponseWriter, r *http.Request) error {
				if _, err := io.ReadAll(r.Body); err != nil {
					return err
				}
				time.Sleep(time.Hour) // of the bubble's time: far beyond the body's deadline
				ctxErr <- r.Context().Err()
				return WriteJSON(w, r, http.StatusOK, "done")
			}},
			{Pattern: "GET /flood", Handle: func(w http.ResponseWriter, _ *http.Request) error {
				for {
					if _, err := w.Write(bytes.Repeat([]byte("x"), 1<<20)); err != nil {
						wrote <- err
						return nil //nolint:nilerr // the test looks at it
					}
				}
			}},
		})}
		listener := &pipes{make(chan net.Conn), make(chan struct{})}
		served := make(chan error, 1)
		go func() { served <- srv.Serve(listener) }() // ends with the listener
		status := func(c net.Conn) int {
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			require.NoError(t, err)
			_ = resp.Body.Close()
			return resp.StatusCode
		}
		// A body that never ends is a bad request.
		begin := time.Now()
		c := listener.dial(t, "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"a\":")
		require.Equal(t, http.StatusBadRequest, status(c))
		require.Equal(t, cfg.BodyTimeout, time.Since(begin))
		_ = c.Close()
		// A handler that takes longer than a body may is not cut off.
		c = listener.dial(t, "POST /long HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
		require.Equal(t, http.StatusOK, status(c))
		require.NoError(t, <-ctxErr)
		_ = c.Close()
		// Who does not read is let go.
		begin = time.Now()
		c = listener.dial(t, "GET /flood HTTP/1.1\r\nHost: localhost\r\n\r\n")
		require.Error(t, <-wrote)
		require.Equal(t, cfg.WriteTimeout, time.Since(begin))
		_ = c.Close()
		require.NoError(t, srv.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
}
