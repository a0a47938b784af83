package link

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
)

// A node sends requests of its callers to a server, which knows the node: whole, with bodies of any size both ways, and with
// connections that become something else. Who does not prove to be a node sends none.
func TestRelays(t *testing.T) {
	relays := NewRelays()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	links := &http.Server{Handler: relays.Handler(&world{}, http.NotFoundHandler()), Protocols: &protocols}
	go func() { _ = links.Serve(l) }() // ends with Close
	t.Cleanup(func() { _ = links.Close() })
	type nodeKey struct{}
	srv := &http.Server{
		ReadHeaderTimeout: time.Minute,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, nodeKey{}, RelayingNode(c))
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Upgrade") != "" {
				c, rw, err := http.NewResponseController(w).Hijack()
				if err != nil {
					return
				}
				defer c.Close()
				_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
				_ = rw.Flush()
				line, _ := rw.ReadString('\n')
				_, _ = rw.WriteString(line)
				_ = rw.Flush()
				return
			}
			_, _ = fmt.Fprintf(w, "%v from %s: ", r.Context().Value(nodeKey{}), r.RemoteAddr[:10])
			_, _ = io.Copy(w, r.Body)
		}),
	}
	go func() { _ = srv.Serve(relays) }()                                      // ends with Close
	t.Cleanup(func() { _ = srv.Shutdown(context.WithoutCancel(t.Context())) }) // it waits for connections that end
	dial := func(secret string, servers ...string) *Dialed {
		return Dial(DialConfig{
			Servers: servers, Identity: Identity{NodeID: "n1", Secret: secret}, Clock: clock.Wall{},
			Log: slog.New(slog.DiscardHandler), Tokens: func(context.Context, string) (exchange.Tokens, error) { return exchange.Tokens{}, nil },
		})
	}
	_, err = dial("wrong", l.Addr().String()).Relay(t.Context())
	require.Equal(t, drover.Unauthorized, drover.CodeOf(err))

	node := dial("s-n1", "127.0.0.1:1", l.Addr().String()) // nobody listens at the first
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return node.Relay(ctx) }}
	t.Cleanup(tr.CloseIdleConnections)
	body := strings.Repeat("0123456789", 1<<18)
	for range 2 { // the second goes over the same connection
		res, err := (&http.Client{Transport: tr}).Post("http://servers/", "text/plain", strings.NewReader(body))
		require.NoError(t, err)
		got, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, "n1 from 127.0.0.1:: "[:16], string(got[:16]))
		require.Equal(t, body, string(got[len(got)-len(body):]))
	}
	c, err := node.Relay(t.Context())
	require.NoError(t, err)
	_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	require.NoError(t, err)
	in := bufio.NewReader(c)
	res, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, res.StatusCode)
	_, err = io.WriteString(c, "hello\n")
	require.NoError(t, err)
	text, err := io.ReadAll(in)
	require.NoError(t, err)
	require.Equal(t, "hello\n", string(text))
	require.NoError(t, c.Close())
}
