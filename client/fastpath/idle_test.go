package fastpath

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/internal/clock"
)

func newIdle() *idle { return &idle{clock: clock.Wall{}, conns: map[string][]*conn{}} }

// waiting is a connection that tells whether it was closed.
func waiting(addr string) (*conn, *atomic.Bool) {
	c := &closable{}
	return newConn(c, addr, 16), &c.closed
}

type closable struct {
	net.Conn
	closed atomic.Bool
}

func (c *closable) Close() error {
	c.closed.Store(true)
	return nil
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i := newIdle()
		a, goneA := waiting("a")
		b, goneB := waiting("a")
		c, goneC := waiting("b")
		i.put(a)
		time.Sleep(keptFor / 2)
		i.put(b)
		i.put(c)
		time.Sleep(keptFor/2 - time.Nanosecond)
		synctest.Wait()
		require.False(t, goneA.Load())
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.True(t, goneA.Load())
		require.False(t, goneB.Load())
		require.Same(t, b, i.pop("a"))
		require.Nil(t, i.pop("a"))
		time.Sleep(keptFor)
		synctest.Wait()
		require.True(t, goneC.Load())
		require.False(t, goneB.Load(), "it is in use")
		require.Nil(t, i.timer)

		i.put(b)
		i.close()
		require.True(t, goneB.Load())
		require.Nil(t, i.timer)
		time.Sleep(2 * keptFor) // no timer is left that would do harm
	})
}

func TestEnoughAreKept(t *testing.T) {
	t.Parallel()
	i := newIdle()
	defer i.close()
	for range keptOpen {
		c, _ := waiting("a")
		i.put(c)
	}
	c, gone := waiting("a")
	i.put(c)
	require.True(t, gone.Load())
	c, gone = waiting("b")
	i.put(c)
	require.False(t, gone.Load())
}

// The connections kept are never more than calls were made at once, and no answer goes to another.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.URL.Path)
	}))
	defer server.Close()
	d := newTransport(t)
	const callers = 200
	var all sync.WaitGroup
	for n := range callers {
		all.Go(func() {
			for i := range 20 {
				path := fmt.Sprintf("/%d/%d", n, i)
				if got := call(d, http.MethodPost, server.URL+path, "x"); got.Body != path {
					t.Errorf("got %+v, want %s", got, path)
				}
			}
		})
	}
	all.Wait()
	require.LessOrEqual(t, len(d.idle.conns[server.Listener.Addr().String()]), keptOpen)
}

// An answer that is closed while it is read, or before its end, ends its connection.
func TestAnAnswerIsClosed(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	s := script(t, func(_ int, conn net.Conn, in *bufio.Reader) {
		heard(in)
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n")
		_, err := in.ReadByte()
		if err == nil {
			t.Error("the connection was used again")
		}
		gone <- struct{}{}
	})
	d := newTransport(t)
	res, err := (&http.Client{Transport: d}).Get(s.url)
	require.NoError(t, err)
	_, err = io.ReadFull(res.Body, make([]byte, 2))
	require.NoError(t, err)
	read := make(chan error)
	go func() { // ends with the connection
		_, err := res.Body.Read(make([]byte, 1))
		read <- err
	}()
	require.NoError(t, res.Body.Close())
	require.ErrorIs(t, <-read, errClosed)
	<-gone
	require.NoError(t, res.Body.Close(), "once more")
}

func TestOverIPv6AndByName(t *testing.T) {
	t.Parallel()
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Host) })
	server := httptest.NewServer(answer)
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	d := newTransport(t)
	require.Equal(t, "localhost:"+port, call(d, http.MethodGet, "http://localhost:"+port, "").Body)

	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		require.NotEqual(t, "true", os.Getenv("CI"), "CI has IPv6: %v", err)
		t.Skip("no IPv6 here: ", err)
	}
	six := &httptest.Server{Listener: l, Config: &http.Server{Handler: answer}}
	six.Start()
	defer six.Close()
	for range 2 {
		require.Equal(t, l.Addr().String(), call(d, http.MethodGet, "http://"+l.Addr().String(), "").Body)
	}
	require.Len(t, d.idle.conns[l.Addr().String()], 1)
}

func TestRedirectsAreFollowed(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/runners" {
			http.Redirect(w, r, "/there", http.StatusTemporaryRedirect)
			return
		}
		text, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, `{"id":%q}`, r.Method+" "+string(text))
	}))
	defer server.Close()
	d := newTransport(t)
	res, err := (&http.Client{Transport: d}).Post(server.URL+"/v1/runners", "application/json", strings.NewReader("1"))
	require.NoError(t, err)
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.JSONEq(t, `{"id":"POST 1"}`, string(text))
	require.Len(t, d.idle.conns[server.Listener.Addr().String()], 1, "one connection was enough")
}

func BenchmarkCall(b *testing.B) {
	for name, make := range map[string]func() http.RoundTripper{
		"fastpath": func() http.RoundTripper { return New(&http.Transport{}) },
		"nethttp":  func() http.RoundTripper { return &http.Transport{} },
	} {
		b.Run(name, func(b *testing.B) {
			s := script(b, func(_ int, conn net.Conn, in *bufio.Reader) {
				for answer := []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"); ; {
					for {
						line, err := in.ReadSlice('\n')
						if err != nil {
							return
						}
						if len(line) == 2 {
							break
						}
					}
					if _, err := conn.Write(answer); err != nil {
						return
					}
				}
			})
			h := &http.Client{Transport: make()}
			defer h.CloseIdleConnections()
			c, err := client.New(s.url, client.WithHTTPClient(h))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Environment(b.Context(), "x"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
