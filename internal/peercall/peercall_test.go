package peercall

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve serves a handler to servers, and returns a client of it and its address.
func serve(t *testing.T, h http.Handler, proven bool) (c *Client, address string, dialled *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	srv := &http.Server{Handler: Identified(h), ReadHeaderTimeout: time.Minute}
	if proven {
		srv.ConnContext = ConnContext
	}
	done := make(chan struct{})
	go func() { // ends when the server is closed
		defer close(done)
		_ = srv.Serve(l)
	}()
	dialled = &atomic.Int32{}
	c = NewClient("a", func(ctx context.Context, address string) (net.Conn, error) {
		dialled.Add(1)
		var d net.Dialer
		return d.DialContext(ctx, "tcp", address)
	}, clock.Wall{})
	t.Cleanup(func() {
		c.Close()
		_ = srv.Close()
		<-done
	})
	return c, l.Addr().String(), dialled
}

type question struct {
	Text  string
	Bytes []byte
	List  []int
}

func TestACallAnswersAndKeepsItsConnection(t *testing.T) {
	t.Parallel()
	m := NewMux()
	Handle(m, "Test.Echo", func(_ context.Context, from string, in question) (question, error) {
		in.Text += " from " + from
		return in, nil
	})
	c, address, dialled := serve(t, m, true)
	large := bytes.Repeat([]byte("x"), 2<<20)
	for range 3 {
		got, err := Call[question](t.Context(), c, address, "Test.Echo", question{"hello", large, []int{1, 2}})
		require.NoError(t, err)
		require.Equal(t, "hello from a", got.Text)
		require.Equal(t, []int{1, 2}, got.List)
		require.True(t, bytes.Equal(large, got.Bytes))
	}
	require.Equal(t, int32(1), dialled.Load())
}

func TestErrorsKeepTheirCodes(t *testing.T) {
	t.Parallel()
	m := NewMux()
	Handle(m, "Test.Fail", func(context.Context, string, string) (int, error) {
		return 0, drover.Errorf(drover.Conflict, "it is %d: %w", 7, errors.New("taken"))
	})
	Handle(m, "Test.Plain", func(context.Context, string, string) (int, error) { return 0, errors.New("a fault") })
	c, address, _ := serve(t, m, true)
	_, err := Call[int](t.Context(), c, address, "Test.Fail", "x")
	require.Equal(t, drover.Conflict, drover.CodeOf(err))
	require.EqualError(t, err, "it is 7: taken")
	_, err = Call[int](t.Context(), c, address, "Test.Plain", "x")
	require.Equal(t, drover.Internal, drover.CodeOf(err))
	_, err = Call[int](t.Context(), c, address, "Test.Unknown", "x")
	require.Equal(t, drover.NotImplemented, drover.CodeOf(err))
	_, err = Call[int](t.Context(), c, address, "Test.Fail", map[string]int{"x": 1})
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	require.Panics(t, func() { Handle(m, "Test.Fail", func(context.Context, string, int) (int, error) { return 0, nil }) })
}

// late is a context whose deadline passes when done is closed.
type late struct {
	context.Context
	done chan struct{}
}

func (l late) Done() <-chan struct{} { return l.done }

func (l late) Err() error {
	select {
	case <-l.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestWhoDoesNotAnswer(t *testing.T) {
	t.Parallel()
	m, entered, left := NewMux(), make(chan struct{}, 2), make(chan struct{}, 2)
	Handle(m, "Test.Wait", func(ctx context.Context, _ string, _ int) (int, error) {
		entered <- struct{}{}
		<-ctx.Done() // when the caller is gone
		left <- struct{}{}
		return 0, ctx.Err()
	})
	c, address, _ := serve(t, m, true)
	short := late{t.Context(), make(chan struct{})}
	go func() { <-entered; close(short.done) }() // ends with the call
	_, err := Call[int](short, c, address, "Test.Wait", 1)
	require.Equal(t, drover.Unavailable, drover.CodeOf(err), "%v", err)
	<-left
	canceled, cancel := context.WithCancel(t.Context())
	go func() { <-entered; cancel() }() // ends with the call
	_, err = Call[int](canceled, c, address, "Test.Wait", 1)
	require.Equal(t, drover.Canceled, drover.CodeOf(err), "%v", err)
	<-left
	refused, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, refused.Close())
	_, err = Call[int](t.Context(), c, refused.Addr().String(), "Test.Wait", 1)
	require.Equal(t, drover.Unavailable, drover.CodeOf(err), "%v", err)
}

// Who is no server calls nothing, whatever its header says.
func TestTheHeaderIsBelievedOfServersOnly(t *testing.T) {
	t.Parallel()
	m := NewMux()
	Handle(m, "Test.Echo", func(_ context.Context, _ string, in int) (int, error) { return in, nil })
	c, address, _ := serve(t, m, false)
	_, err := Call[int](t.Context(), c, address, "Test.Echo", 1)
	require.Equal(t, drover.Forbidden, drover.CodeOf(err))
	_, ok := Of(t.Context())
	require.False(t, ok)
}

// Whole requests pass too, with an upgrade of the connection.
func TestARequestIsUpgraded(t *testing.T) {
	t.Parallel()
	c, address, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, ok := Of(r.Context())
		require.True(t, ok)
		require.Empty(t, r.Header.Get(ServerHeader))
		conn, rw, err := http.NewResponseController(w).Hijack()
		require.NoError(t, err)
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = rw.Flush()
		line, err := rw.ReadString('\n')
		require.NoError(t, err)
		_, _ = io.WriteString(conn, from+" says "+line)
	}), true)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/v1/x", strings.NewReader(""))
	require.NoError(t, err)
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "echo")
	resp, err := c.RoundTrip(r)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	stream := resp.Body.(io.ReadWriteCloser)
	_, err = io.WriteString(stream, "hello\n")
	require.NoError(t, err)
	line, err := bufio.NewReader(stream).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "a says hello\n", line)
	require.NoError(t, stream.Close())
}
