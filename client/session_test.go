package client

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"drover"
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
	s, err := c.Attach(t.Context(), "x", drover.Offsets{})
	require.NoError(t, err)
	defer s.Close()
	f, err := s.Next(t.Context())
	require.NoError(t, err)
	require.True(t, f.Started)
	_, err = s.Next(t.Context())
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	require.False(t, errors.Is(err, io.EOF), "%v", err)
}
