package relay

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/httpapi"
)

// Streams flow in both directions, end with their client, and trailers arrive.
func TestStreams(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	_, s := three(t, nil, func() []httpapi.Route {
		return []httpapi.Route{
			{Pattern: "/echo", Where: httpapi.Leader, Stream: true, MaxBody: -1, Handle: func(w http.ResponseWriter, r *http.Request) error {
				w.Header().Set("Trailer", "Sum")
				ctl := http.NewResponseController(w)
				_ = ctl.EnableFullDuplex()
				lines := bufio.NewScanner(r.Body)
				for lines.Scan() {
					_, _ = fmt.Fprintln(w, lines.Text())
					_ = ctl.Flush()
				}
				w.Header().Set("Sum", "42")
				return nil
			}},
			{Pattern: "/for-ever", Where: httpapi.Leader, Stream: true, Handle: func(w http.ResponseWriter, r *http.Request) error {
				_, _ = io.WriteString(w, "first\n")
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
				close(ended)
				return nil
			}},
		}
	})
	for _, at := range s[:1] { // full duplex is for who answers: a proxy reads the body to its end first
		got := at.ask(t, "POST", "/echo", strings.NewReader("one\ntwo\n"))
		require.Equal(t, "one\ntwo\n", got.body)
	}
	in, out := io.Pipe()
	r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+s[1].http+"/echo", in)
	require.NoError(t, err)
	r.Header.Set("X-Nomad-Token", "token")
	go func() { _, _ = io.WriteString(out, "one\n") }() // ends when it was read
	res, err := client(t).Do(r)
	require.NoError(t, err)
	lines := bufio.NewReader(res.Body)
	for _, want := range []string{"one\n", "two\n", "three\n"} {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, want, line, "each line comes before the next is sent")
		switch want {
		case "one\n":
			_, _ = io.WriteString(out, "two\n")
		case "two\n":
			_, _ = io.WriteString(out, "three\n")
		}
	}
	_ = out.Close()
	_, err = io.ReadAll(lines)
	require.NoError(t, err)
	require.Equal(t, "42", res.Trailer.Get("Sum"))
	require.NoError(t, res.Body.Close())

	ctx, cancel := context.WithCancel(t.Context())
	r, err = http.NewRequestWithContext(ctx, "GET", "http://"+s[1].http+"/for-ever", nil)
	require.NoError(t, err)
	r.Header.Set("X-Nomad-Token", "token")
	res, err = client(t).Do(r)
	require.NoError(t, err)
	line, err := bufio.NewReader(res.Body).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "first\n", line)
	cancel()
	<-ended
	_ = res.Body.Close()
}

// A stream does not outlive the server that it comes from, even if its connection does.
func TestStreamOfAServerThatIsGone(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	w, s := three(t, nil, func() []httpapi.Route {
		return []httpapi.Route{{
			Pattern: "/x", Where: httpapi.Leader, Stream: true,
			Handle: func(w http.ResponseWriter, _ *http.Request) error {
				_, _ = io.WriteString(w, "first\n")
				_ = http.NewResponseController(w).Flush()
				<-release // as a stopped process
				return nil
			},
		}}
	})
	defer close(release)
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+s[1].http+"/x", nil)
	require.NoError(t, err)
	r.Header.Set("X-Nomad-Token", "token")
	res, err := client(t).Do(r)
	require.NoError(t, err)
	w.die("a")
	_, err = io.ReadAll(res.Body)
	require.Error(t, err, "it is cut, not ended")
	_ = res.Body.Close()
}

// An upload goes through as it comes, and is never held whole.
func TestUpload(t *testing.T) {
	t.Parallel()
	const size = 64 << 20
	_, s := three(t, nil, func() []httpapi.Route {
		return []httpapi.Route{{
			Pattern: "PUT /x", MaxBody: -1, Where: httpapi.Leader,
			Handle: func(w http.ResponseWriter, r *http.Request) error {
				n, err := io.Copy(io.Discard, r.Body)
				_, _ = fmt.Fprint(w, n)
				return err
			},
		}}
	})
	got := s[1].ask(t, "PUT", "/x", io.LimitReader(zeros{}, size))
	require.Equal(t, fmt.Sprint(size), got.body)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Upgraded connections pass.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	_, s := three(t, nil, func() []httpapi.Route {
		return []httpapi.Route{{
			Pattern: "GET /x", Where: httpapi.Leader, Stream: true,
			Handle: func(w http.ResponseWriter, _ *http.Request) error {
				c, rw, err := http.NewResponseController(w).Hijack()
				if err != nil {
					return err
				}
				defer c.Close()
				_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
				_ = rw.Flush()
				line, _ := rw.ReadString('\n')
				_, _ = rw.WriteString("echo " + line)
				return rw.Flush()
			},
		}}
	})
	c, err := net.Dial("tcp", s[1].http)
	require.NoError(t, err)
	defer c.Close()
	_, _ = fmt.Fprintf(c, "GET /x HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Nomad-Token: token\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	in := bufio.NewReader(c)
	res, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, res.StatusCode)
	_, _ = io.WriteString(c, "hello\n")
	rest, err := io.ReadAll(in)
	require.NoError(t, err)
	require.Equal(t, "echo hello\n", string(rest))
}

// Who reads slowly slows the server down, and nothing is lost.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	const size = 8 << 20
	_, s := three(t, nil, func() []httpapi.Route {
		return []httpapi.Route{{
			Pattern: "GET /x", Where: httpapi.Leader, Stream: true,
			Handle: func(w http.ResponseWriter, _ *http.Request) error {
				_, err := io.Copy(w, io.LimitReader(zeros{}, size))
				return err
			},
		}}
	})
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+s[1].http+"/x", nil)
	require.NoError(t, err)
	r.Header.Set("X-Nomad-Token", "token")
	res, err := client(t).Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	var got bytes.Buffer
	n, err := io.CopyBuffer(struct{ io.Writer }{&got}, struct{ io.Reader }{res.Body}, make([]byte, 512))
	require.NoError(t, err)
	require.EqualValues(t, size, n)
}
