package httpapi

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSlowPeersAreLetGo(t *testing.T) {
	t.Parallel()
	cfg := testConfig()
	cfg.BodyTimeout, cfg.WriteTimeout, cfg.MaxBody = 50*time.Millisecond, 50*time.Millisecond, 1<<10
	wrote := make(chan error, 1)
	ctxErr := make(chan error, 1)
	after := make(chan struct{})
	srv := httptest.NewServer(Handler(cfg, testFace{
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
			<-after // far beyond the body's deadline
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
	}))
	defer srv.Close()
	dial := func(request string) net.Conn {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
		require.NoError(t, err)
		_, err = fmt.Fprint(c, request)
		require.NoError(t, err)
		return c
	}
	status := func(c net.Conn) int {
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	// A body that never ends is a bad request.
	c := dial("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"a\":")
	require.Equal(t, http.StatusBadRequest, status(c))
	_ = c.Close()
	// A handler that takes longer than a body may is not cut off.
	c = dial("POST /long HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
	timer := time.AfterFunc(300*time.Millisecond, func() { close(after) })
	defer timer.Stop()
	require.Equal(t, http.StatusOK, status(c))
	require.NoError(t, <-ctxErr)
	_ = c.Close()
	// Who does not read is let go.
	c = dial("GET /flood HTTP/1.1\r\nHost: localhost\r\n\r\n")
	require.Error(t, <-wrote)
	_ = c.Close()
}
