package socket_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi/socket"
)

func TestJoinedMessagesArriveInOrderAndBeforeTheClosing(t *testing.T) {
	t.Parallel()
	messages := []string{"one", "two", strings.Repeat("long", 10_000), "three", "four", "last"}
	connected(t, func(ctx context.Context, c *socket.Conn) error {
		go func() { _, _, _ = c.Read(ctx) }() // ends with the connection
		for i, m := range messages {
			if i%2 == 0 || m == "last" {
				c.Join()
			}
			if err := c.Send(ctx, websocket.MessageText, []byte(m)); err != nil {
				return err
			}
			if m == "three" {
				c.Flush()
				c.Flush() // nothing is left
			}
		}
		return c.Close(websocket.StatusNormalClosure, "")
	}, func(client *websocket.Conn, result chan error) {
		client.SetReadLimit(1 << 20)
		for _, want := range messages {
			_, got, err := client.Read(context.Background())
			require.NoError(t, err)
			require.Equal(t, want, string(got))
		}
		_, _, err := client.Read(context.Background())
		require.Equal(t, websocket.StatusNormalClosure, websocket.CloseStatus(err))
		require.NoError(t, <-result)
	})
}

func TestFlushSendsWhatJoinHeldBack(t *testing.T) {
	t.Parallel()
	connected(t, func(ctx context.Context, c *socket.Conn) error {
		c.Join()
		if err := c.Send(ctx, websocket.MessageText, []byte("held")); err != nil {
			return err
		}
		c.Flush()
		_, _, err := c.Read(ctx)
		return err
	}, func(client *websocket.Conn, result chan error) {
		_, got, err := client.Read(context.Background())
		require.NoError(t, err)
		require.Equal(t, "held", string(got))
		require.NoError(t, client.Write(context.Background(), websocket.MessageText, []byte("got it")))
		require.NoError(t, <-result)
	})
}

func TestAJoinedAnswerComesWithTheFirstMessage(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Own", "kept")
		conn, err := socket.AcceptJoined(w, r, clock.Wall{})
		if err != nil {
			return
		}
		_ = conn.Send(r.Context(), websocket.MessageText, []byte("first"))
		_ = conn.Close(websocket.StatusNormalClosure, "")
	}))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"))
	require.NoError(t, err)
	answer := make([]byte, 4<<10)
	n, err := conn.Read(answer)
	require.NoError(t, err)
	want := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nSec-Websocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" +
		"Upgrade: websocket\r\nX-Own: kept\r\n\r\n\x81\x05first"
	require.Equal(t, want, string(answer[:min(n, len(want))])) // the closing may have arrived too
}
