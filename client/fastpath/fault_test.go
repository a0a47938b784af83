package fastpath

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const noContent = "HTTP/1.1 204 No Content\r\n\r\n"

// A connection that the server closes while it is idle is not used again, whatever the method.
func TestAnIdleConnectionEnds(t *testing.T) {
	t.Parallel()
	conns := make(chan net.Conn, 1)
	s := script(t, func(n int, conn net.Conn, in *bufio.Reader) {
		if heard(in) != nil {
			_, _ = io.WriteString(conn, noContent)
			conns <- conn
			_, _ = in.ReadByte()
		}
	})
	d := newTransport(t)
	for range 3 {
		require.Equal(t, http.StatusNoContent, call(d, http.MethodPost, s.url, "x").Status)
		conn := <-conns
		ours := d.idle.pop(strings.TrimPrefix(s.url, "http://"))
		require.NoError(t, conn.Close())
		_, err := ours.Conn.Read(make([]byte, 1)) // waits for the end, which stays there
		require.ErrorIs(t, err, io.EOF)
		d.idle.put(ours)
	}
	require.EqualValues(t, 3, s.conns.Load())
}

// The second request on a connection is read and not answered.
func TestWhatIsSentAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method, body, key string
		handshake         bool
		partly            string // of an answer
		again             bool
	}{
		"GET":                    {method: http.MethodGet, again: true},
		"GET, partly answered":   {method: http.MethodGet, partly: "H"},
		"handshake":              {method: http.MethodGet, handshake: true},
		"DELETE":                 {method: http.MethodDelete},
		"PUT":                    {method: http.MethodPut, body: "x"},
		"POST":                   {method: http.MethodPost, body: "x"},
		"POST with a key":        {method: http.MethodPost, body: "x", key: "1", again: true},
		"POST with a key, empty": {method: http.MethodPost, key: "1", again: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			bodies := ""
			s := script(t, func(n int, conn net.Conn, in *bufio.Reader) {
				for i := 1; ; i++ {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					text, _ := io.ReadAll(r.Body)
					mu.Lock()
					bodies += fmt.Sprintf("%d.%d:%s ", n, i, text)
					mu.Unlock()
					if n == 1 && i == 2 {
						_, _ = io.WriteString(conn, c.partly)
						return
					}
					_, _ = io.WriteString(conn, noContent)
				}
			})
			d := newTransport(t)
			ask := func() error {
				r, err := http.NewRequest(c.method, s.url, strings.NewReader(c.body))
				require.NoError(t, err)
				if c.key != "" {
					r.Header.Set("Idempotency-Key", c.key)
				}
				if c.handshake {
					r.Header.Set("Upgrade", "websocket")
				}
				res, err := d.RoundTrip(r)
				if err == nil {
					res.Body.Close()
				}
				return err
			}
			require.NoError(t, ask())
			want := fmt.Sprintf("1.1:%s 1.2:%[1]s ", c.body)
			if c.again {
				require.NoError(t, ask())
				want += "2.1:" + c.body + " "
			} else {
				require.Error(t, ask())
			}
			mu.Lock()
			require.Equal(t, want, bodies)
			mu.Unlock()
			require.NoError(t, ask(), "on another connection")
		})
	}
}

// A connection that takes nothing any more is known to have sent nothing: any request may follow on another.
func TestWhatWasNotSentIsSentAgain(t *testing.T) {
	t.Parallel()
	s := script(t, always(noContent, false))
	d := newTransport(t)
	var first *deaf
	d.fallback.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil || first != nil {
			return conn, err
		}
		first = &deaf{TCPConn: conn.(*net.TCPConn)}
		return first, nil
	}
	require.Equal(t, http.StatusNoContent, call(d, http.MethodPost, s.url, "x").Status)
	first.now = true
	require.Equal(t, http.StatusNoContent, call(d, http.MethodPost, s.url, "x").Status)
	require.EqualValues(t, 2, s.conns.Load())
}

type deaf struct {
	*net.TCPConn
	now bool
}

func (d *deaf) Write(p []byte) (int, error) {
	if d.now {
		return 0, syscall.EPIPE
	}
	return d.TCPConn.Write(p)
}

// blocked never reads, and never ends.
type blocked struct{ net.Conn }

func TestTheContextEndsACall(t *testing.T) {
	t.Parallel()
	cause := errors.New("enough")
	silent := func(text string) func(int, net.Conn, *bufio.Reader) {
		return func(_ int, conn net.Conn, in *bufio.Reader) {
			if heard(in) != nil {
				_, _ = io.WriteString(conn, text)
				_, err := in.ReadByte()
				if err == nil {
					t.Error("the connection was used again")
				}
			}
		}
	}
	for name, c := range map[string]struct {
		serve func(int, net.Conn, *bufio.Reader)
		dial  func(ctx context.Context, network, addr string) (net.Conn, error)
		body  bool // the answer's is what is waited for
	}{
		"while dialling": {dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}},
		"while writing": {dial: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			t.Cleanup(func() { theirs.Close() })
			return blocked{ours}, nil
		}},
		"while waiting":      {serve: silent("")},
		"in the head":        {serve: silent("HTTP/1.1 200")},
		"between two":        {serve: silent("HTTP/1.1 103 Early Hints\r\n\r\n")},
		"in the body":        {serve: silent("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok"), body: true},
		"in a chunk":         {serve: silent("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nok"), body: true},
		"in what is endless": {serve: silent("HTTP/1.1 200 OK\r\n\r\nok"), body: true},
		"in compressed": {
			serve: silent("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nok"),
			body:  true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := "http://127.0.0.1:1"
			if c.serve != nil {
				addr = script(t, c.serve).url
			}
			d := newTransport(t)
			d.fallback.DialContext = c.dial
			for _, timed := range []bool{false, true} {
				ctx, cancel := context.WithCancelCause(t.Context())
				want := cause
				end := func() { time.AfterFunc(20*time.Millisecond, func() { cancel(cause) }) }
				switch {
				case c.body: // not before there is one
				case timed:
					soon, stop := context.WithTimeout(ctx, 20*time.Millisecond)
					defer stop()
					ctx, want = soon, context.DeadlineExceeded
				default:
					end()
				}
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, addr, strings.NewReader("body"))
				require.NoError(t, err)
				res, err := d.RoundTrip(r)
				if c.body {
					require.NoError(t, err)
					end()
					_, err = io.Copy(io.Discard, res.Body)
				}
				require.ErrorIs(t, err, want)
				if c.body {
					_, err = res.Body.Read(make([]byte, 1))
					require.ErrorIs(t, err, want, "and it stays so")
					require.NoError(t, res.Body.Close())
				}
				cancel(nil)
				require.Empty(t, d.idle.conns)
			}
		})
	}
}

func TestAnEndedContextSendsNothing(t *testing.T) {
	t.Parallel()
	s := script(t, always(noContent, false))
	d := newTransport(t)
	require.False(t, call(d, http.MethodGet, s.url, "").Failed)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, http.NoBody)
	require.NoError(t, err)
	_, err = d.RoundTrip(r) // there is none
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, call(d, http.MethodGet, s.url, "").Failed)
	require.EqualValues(t, 1, s.conns.Load(), "the connection is as good as before")
}

// A server that answers before it has read the request, and closes.
func TestAnEarlyAnswer(t *testing.T) {
	t.Parallel()
	for _, closes := range []bool{true, false} {
		t.Run(fmt.Sprintf("closes=%t", closes), func(t *testing.T) {
			t.Parallel()
			s := script(t, func(_ int, conn net.Conn, in *bufio.Reader) {
				_, _ = io.WriteString(conn, "HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno")
				if !closes {
					_, _ = in.ReadByte()
					<-t.Context().Done()
				}
			})
			d := newTransport(t)
			for range 3 {
				got := call(d, http.MethodPost, s.url, strings.Repeat("x", mostBody))
				require.Equal(t, http.StatusRequestEntityTooLarge, got.Status)
				require.Equal(t, "no", got.Body)
			}
			require.EqualValues(t, 3, s.conns.Load())
		})
	}
	// The writing fails; there is an answer yet.
	d := newTransport(t)
	d.fallback.DialContext = func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() { // ends with the answer
			in := bufio.NewReaderSize(theirs, 16)
			_, _ = in.Peek(16)
			_, _ = io.WriteString(theirs, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno")
			theirs.Close()
		}()
		return &halfClosed{Conn: ours}, nil
	}
	got := call(d, http.MethodPost, "http://a.example", "xxx")
	require.Equal(t, http.StatusUnauthorized, got.Status)
	require.Equal(t, "no", got.Body)
}

// halfClosed takes 16 bytes of what is written, as a pipe whose reader went.
type halfClosed struct{ net.Conn }

func (h *halfClosed) Write(p []byte) (int, error) {
	n, err := h.Conn.Write(p[:16])
	return n, errors.Join(err, io.ErrClosedPipe)
}

func TestALongHeadSaysSo(t *testing.T) {
	t.Parallel()
	s := script(t, always("HTTP/1.1 200 OK\r\n"+strings.Repeat("A: a\r\n", mostHead), false))
	_, err := newTransport(t).RoundTrip(httptest.NewRequest(http.MethodGet, s.url, http.NoBody)) // there is none
	require.ErrorContains(t, err, "head of the server's answer is longer")
}

// What net/http refuses is refused with its words; what is not for us goes its way.
func TestWhatGoesTheUsualWay(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		_, _ = w.Write(text)
	}))
	defer server.Close()
	d := newTransport(t)
	require.Len(t, call(d, http.MethodPost, server.URL, strings.Repeat("x", mostBody+1)).Body, mostBody+1)
	r, err := http.NewRequest(http.MethodPost, server.URL, io.MultiReader(strings.NewReader("stream")))
	require.NoError(t, err)
	res, err := d.RoundTrip(r)
	require.NoError(t, err)
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, "stream", string(text))
	require.NoError(t, res.Body.Close())
	require.Empty(t, d.idle.conns)

	r, err = http.NewRequest(http.MethodGet, "http://bücher.example", http.NoBody)
	require.NoError(t, err)
	require.False(t, d.serves(r), "net/http knows the name in ASCII")

	r = httptest.NewRequest(http.MethodGet, server.URL, http.NoBody)
	r.Header.Set("X-Drover-Token", "a\nb")
	_, err = d.RoundTrip(r) // there is none
	require.ErrorContains(t, err, "invalid header field value")

	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "by proxy to ", r.URL)
	}))
	defer proxy.Close()
	d.fallback.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(proxy.URL) }
	require.Equal(t, "by proxy to http://a.example/b", call(d, http.MethodGet, "http://a.example/b", "").Body)
}
