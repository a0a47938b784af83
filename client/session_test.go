package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// A session's io.EOF means that the receipt was there: a server that was killed must not look like that.
func TestABrokenConnectionIsNoEnd(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		_ = conn.Write(r.Context(), websocket.MessageText, []byte(`{"type":"started","execution":"x","pid":7}`))
		_ = conn.CloseNow()
	}))
	defer server.Close()
	c, err := New(server.URL)
	require.NoError(t, err)
	s, err := c.Attach(t.Context(), "x", execution.Offsets{})
	require.NoError(t, err)
	defer s.Close()
	f, err := s.Next(t.Context())
	require.NoError(t, err)
	require.True(t, f.Started)
	_, err = s.Next(t.Context())
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	require.False(t, errors.Is(err, io.EOF), "%v", err)
}

// Who ended it is told apart from what broke.
func TestAnEndedContextIsNoBrokenConnection(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" { // the events
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		_, _, _ = conn.Read(r.Context()) // until the client has gone
	}))
	defer server.Close()
	c, err := New(server.URL)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	s, err := c.Attach(ctx, "x", execution.Offsets{})
	require.NoError(t, err)
	defer s.Close()
	events, err := c.Events(ctx, 0)
	require.NoError(t, err)
	defer events.Close()
	cancel()
	_, err = s.Next(ctx)
	require.Equal(t, drover.Canceled, drover.CodeOf(err), "%v", err)
	_, err = events.Next()
	require.Equal(t, drover.Canceled, drover.CodeOf(err), "%v", err)
	_, err = c.Attach(ctx, "x", execution.Offsets{})
	require.Equal(t, drover.Canceled, drover.CodeOf(err), "%v", err)
	_, err = c.Execute(ctx, "x", execution.Request{})
	require.Equal(t, drover.Canceled, drover.CodeOf(err), "%v", err)
}
