package client

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// served is a server that holds one conversation with each connection, in order.
func served(t *testing.T, each ...func(r *http.Request, c *websocket.Conn)) *Client {
	next := make(chan func(r *http.Request, c *websocket.Conn), len(each))
	for _, f := range each {
		next <- f
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case f := <-next:
			c, err := websocket.Accept(w, r, nil)
			if err != nil {
				return
			}
			defer c.CloseNow()
			f(r, c)
		default:
			http.Error(w, "not here", http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	c, err := New(server.URL)
	require.NoError(t, err)
	return c
}

func says(t *testing.T, r *http.Request, c *websocket.Conn, texts ...string) {
	for _, text := range texts {
		if c.Write(r.Context(), websocket.MessageText, []byte(text)) != nil {
			t.Error("the client has gone")
		}
	}
}

func hears(t *testing.T, r *http.Request, c *websocket.Conn, want string) {
	_, got, err := c.Read(r.Context())
	if err != nil || string(got) != want {
		t.Errorf("%q came (%v), want %q", got, err, want)
	}
}

// The connection breaks while three of five bytes of stdin were given. They are not sent again, the others are, and the end of stdin
// too; the output goes on at its offset.
func TestALastingAttachmentGoesOn(t *testing.T) {
	t.Parallel()
	wrote := make(chan struct{})
	first := served(t, func(r *http.Request, c *websocket.Conn) {
		_, _, _ = c.Read(r.Context()) // the request
		says(t, r, c, `{"type":"started","execution":"x","pid":7,"stdin":0}`)
		hears(t, r, c, "abcde")
		hears(t, r, c, `{"type":"close-stdin"}`)
		says(t, r, c, `{"type":"given","stdin":2}`)
		_ = c.Write(r.Context(), websocket.MessageBinary, []byte("\x01out"))
		<-wrote
	})
	second := served(t, func(r *http.Request, c *websocket.Conn) {
		if q := r.URL.Query(); q.Get("stdin") != "resume" || q.Get("stdout") != "3" || q.Get("stderr") != "0" {
			t.Errorf("it attaches with %v", q)
		}
		says(t, r, c, `{"type":"started","execution":"x","pid":7,"stdin":3}`)
		hears(t, r, c, "de")
		hears(t, r, c, `{"type":"close-stdin"}`)
		_ = c.Write(r.Context(), websocket.MessageBinary, []byte("\x01put"))
		says(t, r, c, `{"type":"receipt","receipt":{"exitCode":0,"cause":"exited"}}`)
	})
	ctx := t.Context()
	s, err := ExecuteLasting(ctx, []*Client{first, second}, "r", execution.Request{Spec: execution.Spec{Argv: []string{"cat"}, Stdin: true}})
	require.NoError(t, err)
	require.Equal(t, drover.Unavailable, drover.CodeOf(s.Signal(ctx, "INT")), "it has not started")
	f, err := s.Next(ctx)
	require.NoError(t, err)
	require.True(t, f.Started)
	require.Equal(t, "x", s.ID())
	require.NoError(t, s.Write(ctx, []byte("abcde")))
	require.NoError(t, s.CloseStdin(ctx))
	f, err = s.Next(ctx)
	require.NoError(t, err)
	require.Equal(t, "out", string(f.Data))
	close(wrote)
	f, err = s.Next(ctx)
	require.NoError(t, err)
	require.Equal(t, "put", string(f.Data))
	require.Equal(t, int64(3), f.Offset)
	f, err = s.Next(ctx)
	require.NoError(t, err)
	require.NotNil(t, f.Receipt)
	require.Equal(t, drover.Conflict, drover.CodeOf(s.Write(ctx, []byte("more"))))
	_ = s.Close() // the server has left
}

// The command ends while nobody is attached: where its stdin goes on is no matter then, and the rest of its output comes.
func TestALastingAttachmentHearsOfAnEnd(t *testing.T) {
	t.Parallel()
	first := served(t, func(r *http.Request, c *websocket.Conn) {
		_, _, _ = c.Read(r.Context())
		says(t, r, c, `{"type":"started","execution":"x","pid":7,"stdin":0}`)
		hears(t, r, c, `{"type":"close-stdin"}`)
	})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/execution/x", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"id":"x","running":false}`)
	})
	mux.HandleFunc("GET /v1/execution/x/attach", func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		says(t, r, c, `{"type":"started","execution":"x","pid":7}`)
		_ = c.Write(r.Context(), websocket.MessageBinary, []byte("\x01end"))
		says(t, r, c, `{"type":"receipt","receipt":{"exitCode":0,"cause":"exited"}}`)
		_, _, _ = c.Read(r.Context()) // until the client closes it
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	second, err := New(server.URL)
	require.NoError(t, err)
	request := execution.Request{Spec: execution.Spec{Argv: []string{"cat"}, Stdin: true}}
	s, err := ExecuteLasting(t.Context(), []*Client{first, second}, "r", request)
	require.NoError(t, err)
	_, err = s.Next(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.CloseStdin(t.Context()))
	f, err := s.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, "end", string(f.Data))
	f, err = s.Next(t.Context())
	require.NoError(t, err)
	require.NotNil(t, f.Receipt)
	_ = s.Close() // the server has left
}

// A server that does not say where stdin goes on must not get it twice.
func TestALastingAttachmentDoesNotGuess(t *testing.T) {
	t.Parallel()
	one := served(t, func(r *http.Request, c *websocket.Conn) {
		_, _, _ = c.Read(r.Context())
		says(t, r, c, `{"type":"started","execution":"x","pid":7,"stdin":0}`)
		hears(t, r, c, "abc")
	}, func(r *http.Request, c *websocket.Conn) {
		says(t, r, c, `{"type":"started","execution":"x","pid":7}`)
		_, _, _ = c.Read(r.Context())
	})
	s, err := ExecuteLasting(t.Context(), []*Client{one}, "r", execution.Request{Spec: execution.Spec{Argv: []string{"cat"}, Stdin: true}})
	require.NoError(t, err)
	_, err = s.Next(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Write(t.Context(), []byte("abc")))
	_, err = s.Next(t.Context())
	require.ErrorContains(t, err, "does not tell where its stdin goes on")
	require.NoError(t, s.Close())
}
