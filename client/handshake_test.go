package client

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client/fastpath"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// greet sends a first message in one write with the answer to the handshake, as far as the network lets it.
func greet(t *testing.T) http.HandlerFunc {
	t.Helper()
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/greet" {
			http.Error(w, `{"code":"gone","message":"no such thing"}`, http.StatusGone)
			return
		}
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		if err := conn.Write(r.Context(), websocket.MessageText, []byte(r.Header.Get("X-Drover-Token"))); err != nil {
			t.Error(err)
		}
		_, text, err := conn.Read(r.Context())
		if err != nil || string(text) != "thanks" {
			t.Errorf("got %q, %v", text, err)
		}
		_ = conn.Close(websocket.StatusNormalClosure, "")
	}
}

func talk(t *testing.T, c *Client) {
	t.Helper()
	conn, _, err := c.dial(t.Context(), []string{"greet"}, url.Values{}, http.Header{})
	require.NoError(t, err)
	_, text, err := conn.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, "secret", string(text))
	require.NoError(t, conn.Write(t.Context(), websocket.MessageText, []byte("thanks")))
	_, _, err = conn.Read(t.Context())
	require.Equal(t, websocket.StatusNormalClosure, websocket.CloseStatus(err))
}

// transports are those that a client may have.
func transports(std *http.Transport) map[string]http.RoundTripper {
	return map[string]http.RoundTripper{"net/http": std, "fastpath": fastpath.New(std)}
}

func TestHandshakeWithoutAndWithTLS(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(greet(t))
	defer plain.Close()
	c, err := New(plain.URL, WithToken("secret"))
	require.NoError(t, err)
	talk(t, c)

	sealed := httptest.NewTLSServer(greet(t))
	defer sealed.Close()
	for _, server := range []*httptest.Server{plain, sealed} {
		for _, rt := range transports(server.Client().Transport.(*http.Transport)) {
			c, err = New(server.URL, WithToken("secret"), WithHTTPClient(&http.Client{Transport: rt}))
			require.NoError(t, err)
			talk(t, c)
		}
		server.Client().CloseIdleConnections()
	}
}

// net/http's transport has connections of their own for websockets.
func TestAHandshakeOnTheFastPathTakesAKeptConnection(t *testing.T) {
	t.Parallel()
	var opened atomic.Int32
	server := httptest.NewUnstartedServer(greet(t))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	c, err := New(server.URL, WithToken("secret"), WithHTTPClient(&http.Client{Transport: fastpath.New(nil)}))
	require.NoError(t, err)
	for i := range 2 {
		_, err = c.call(t.Context(), http.MethodGet, []string{"nothing"}, nil, nil, nil)
		require.Equal(t, drover.Gone, drover.CodeOf(err))
		talk(t, c)
		require.EqualValues(t, i+1, opened.Load())
	}
}

func TestARefusedHandshakeSaysWhy(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(greet(t))
	defer server.Close()
	c, err := New(server.URL)
	require.NoError(t, err)
	_, _, err = c.dial(t.Context(), []string{"nothing"}, nil, http.Header{})
	require.Equal(t, drover.Gone, drover.CodeOf(err))
	require.ErrorContains(t, err, "no such thing")

	server.Close()
	_, _, err = c.dial(t.Context(), []string{"nothing"}, nil, http.Header{})
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
}

func TestAHandshakeEndsWithItsContext(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	accepted, asked := make(chan net.Conn, 1), make(chan string, 1)
	go func() { // ends with the first request
		conn, err := l.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		buf := make([]byte, 1024)
		n, err := conn.Read(buf)
		if err != nil {
			t.Error(err)
		}
		accepted <- conn
		asked <- string(buf[:n])
		cancel()
	}()
	c, err := New("http://" + l.Addr().String())
	require.NoError(t, err)
	_, _, err = c.dial(ctx, []string{"greet"}, nil, http.Header{})
	require.ErrorIs(t, err, context.Canceled)
	conn := <-accepted
	defer conn.Close()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err = io.Copy(io.Discard, conn)
	require.NoError(t, err, "the client has closed it")
	got := <-asked
	require.True(t, strings.HasPrefix(got, "GET /v1/greet HTTP/1.1\r\n"), got)
}
