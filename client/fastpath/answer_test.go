package fastpath

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// scripted is a server that does by hand what net/http's would not.
type scripted struct {
	url   string
	conns atomic.Int32 // accepted
}

// script serves each connection by serve, which gets its number from 1 on, until the test ends.
func script(t testing.TB, serve func(n int, conn net.Conn, in *bufio.Reader)) *scripted {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &scripted{url: "http://" + l.Addr().String()}
	var served sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	served.Go(func() { // ends with the listener
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, conn)
			mu.Unlock()
			n := int(s.conns.Add(1))
			served.Go(func() { // ends with its connection
				defer conn.Close()
				serve(n, conn, bufio.NewReader(conn))
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, conn := range open {
			conn.Close()
		}
		mu.Unlock()
		served.Wait()
	})
	return s
}

// always answers each request with the text, and closes the connection if it is to.
func always(text string, closes bool) func(int, net.Conn, *bufio.Reader) {
	return func(_ int, conn net.Conn, in *bufio.Reader) {
		for heard(in) != nil {
			if _, err := io.WriteString(conn, text); err != nil || closes {
				return
			}
		}
	}
}

// heard reads a request with its body, or returns nil.
func heard(in *bufio.Reader) *http.Request {
	r, err := http.ReadRequest(in)
	if err != nil {
		return nil
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil
	}
	return r
}

func newTransport(t testing.TB) *Transport {
	t.Helper()
	d := New(&http.Transport{})
	t.Cleanup(d.CloseIdleConnections)
	return d
}

// outcome is what a caller sees of a call.
type outcome struct {
	Status  int
	Header  http.Header
	Trailer http.Header
	Length  int64
	Body    string
	Failed  bool // without an answer
	Cut     bool // the body
}

func call(rt http.RoundTripper, method, url, body string) outcome {
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return outcome{Failed: true}
	}
	if body == "" {
		r.Body, r.GetBody = nil, nil
	}
	res, err := rt.RoundTrip(r)
	if err != nil {
		return outcome{Failed: true}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return outcome{res.StatusCode, res.Header, res.Trailer, res.ContentLength, string(text), false, err != nil}
}

func zip(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(text))
	_ = z.Close()
	return b.String()
}

// answer is what a server sends, and what its client makes of it.
type answer struct {
	method, answer string
	closes         bool
	want           outcome
	kept           bool
}

func answers() map[string]answer {
	zipped := zip("plain")
	return map[string]answer{
		"of known length": {
			answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
			want:   outcome{Status: 200, Body: "ok", Length: 2}, kept: true,
		},
		"empty": {answer: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", want: outcome{Status: 200}, kept: true},
		"in chunks": {
			answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n",
			want:   outcome{Status: 200, Body: "ok", Length: -1}, kept: true,
		},
		"with a trailer": {
			answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Sum\r\n\r\n2\r\nok\r\n0\r\nSum: 1\r\n\r\n",
			want:   outcome{Status: 200, Body: "ok", Length: -1}, kept: true,
		},
		"without content": {answer: "HTTP/1.1 204 No Content\r\n\r\n", want: outcome{Status: 204}, kept: true},
		"not modified":    {answer: "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", want: outcome{Status: 304}, kept: true},
		"to HEAD": {
			method: http.MethodHead, answer: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
			want: outcome{Status: 200, Length: 5}, kept: true,
		},
		"after others": {
			answer: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
			want:   outcome{Status: 204}, kept: true,
		},
		"compressed": {
			answer: fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", len(zipped), zipped),
			want:   outcome{Status: 200, Body: "plain", Length: -1}, kept: true,
		},
		"falsely compressed": {
			answer: "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok",
			want:   outcome{Status: 200, Length: -1, Cut: true}, kept: true,
		},
		"the last": {
			answer: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
			want:   outcome{Status: 200, Body: "ok", Length: 2},
		},
		"the last, empty": {answer: "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n", want: outcome{Status: 204}},
		"until the end":   {answer: "HTTP/1.1 200 OK\r\n\r\nok", closes: true, want: outcome{Status: 200, Body: "ok", Length: -1}},
		"of HTTP/1.0":     {answer: "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", want: outcome{Status: 200, Body: "ok", Length: 2}},
		"of HTTP/1.0, one of many": {
			answer: "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
			want:   outcome{Status: 200, Body: "ok", Length: 2}, kept: true,
		},
		"with more than it has": {
			answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokay",
			want:   outcome{Status: 200, Body: "ok", Length: 2},
		},
		"without, but with some": {answer: "HTTP/1.1 204 No Content\r\n\r\nokay", want: outcome{Status: 204}},
		"and no more": {
			answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", closes: true,
			want: outcome{Status: 200, Body: "ok", Length: 2},
		},
		"cut": {
			answer: "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", closes: true,
			want: outcome{Status: 200, Body: "ok", Length: 3, Cut: true},
		},
		"cut in chunks": {
			answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", closes: true,
			want: outcome{Status: 200, Body: "ok", Length: -1, Cut: true},
		},
		"cut in its head":     {answer: "HTTP/1.1 200 OK\r\nContent-", closes: true, want: outcome{Failed: true}},
		"none":                {closes: true, want: outcome{Failed: true}},
		"something else":      {answer: "SSH-2.0-OpenSSH_9.9\r\n", want: outcome{Failed: true}},
		"with a false length": {answer: "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nok", want: outcome{Failed: true}},
		"with an endless head": {
			answer: "HTTP/1.1 200 OK\r\n" + strings.Repeat("A: "+strings.Repeat("a", 1000)+"\r\n", mostHead/1000),
			want:   outcome{Failed: true},
		},
		"only others": {answer: strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", mostHead/20), want: outcome{Failed: true}},
	}
}

// Each answer is asked for twice; kept tells that the second request came over the connection of the first.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range answers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := script(t, always(c.answer, c.closes))
			d := newTransport(t)
			for range 2 {
				got := call(d, c.method, s.url, "")
				if !got.Failed {
					require.NotNil(t, got.Header)
				}
				if name == "with a trailer" {
					require.Equal(t, "1", got.Trailer.Get("Sum"))
				}
				got.Header, got.Trailer = nil, nil
				require.Equal(t, c.want, got)
			}
			require.Equal(t, c.kept, s.conns.Load() == 1)
		})
	}
}

// randomAnswer draws what a server says to one request, and whether it closes after it.
func randomAnswer(t *rapid.T, method string) (text string, closes bool) {
	var b strings.Builder
	for range rapid.IntRange(0, 2).Draw(t, "others") {
		b.WriteString("HTTP/1.1 10" + rapid.SampledFrom([]string{"0", "2", "3"}).Draw(t, "other") + " x\r\n\r\n")
	}
	status := rapid.SampledFrom([]int{200, 201, 204, 304, 404, 413, 503}).Draw(t, "status")
	old := rapid.Bool().Draw(t, "old")
	if old {
		fmt.Fprintf(&b, "HTTP/1.0 %d x\r\n", status)
	} else {
		fmt.Fprintf(&b, "HTTP/1.1 %d x\r\n", status)
	}
	body := rapid.StringN(0, 10_000, -1).Draw(t, "body")
	if rapid.Bool().Draw(t, "zipped") {
		b.WriteString("Content-Encoding: gzip\r\n")
		body = zip(body)
	}
	if rapid.Bool().Draw(t, "last") {
		b.WriteString("Connection: close\r\n")
		closes = true
	}
	switch form := rapid.IntRange(0, 2).Draw(t, "form"); {
	case method == http.MethodHead || status == http.StatusNoContent || status == http.StatusNotModified:
		b.WriteString("\r\n")
	case form == 0:
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
	case form == 1 && !old:
		b.WriteString("Transfer-Encoding: chunked\r\nTrailer: T\r\n\r\n")
		if body != "" {
			fmt.Fprintf(&b, "%x\r\n%s\r\n", len(body), body)
		}
		b.WriteString("0\r\nT: 1\r\n\r\n")
	default:
		b.WriteString("\r\n" + body)
		closes = true
	}
	text = b.String()
	if rapid.IntRange(0, 3).Draw(t, "cut") == 0 {
		return text[:rapid.IntRange(0, len(text)).Draw(t, "at")], true
	}
	return text, closes
}

func TestTheSameAsNetHTTP(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		type step struct {
			method, body, answer string
			closes               bool
		}
		steps := make([]step, rapid.IntRange(1, 5).Draw(rt, "steps"))
		for i := range steps {
			s := &steps[i]
			s.method = rapid.SampledFrom([]string{http.MethodGet, http.MethodHead, http.MethodDelete, http.MethodPost}).Draw(rt, "method")
			if s.method == http.MethodPost {
				s.body = rapid.StringN(0, 1000, -1).Draw(rt, "request")
			}
			s.answer, s.closes = randomAnswer(rt, s.method)
		}
		var all [2][]outcome
		for i := range all {
			s := script(t, func(_ int, conn net.Conn, in *bufio.Reader) {
				for {
					r := heard(in)
					if r == nil {
						return
					}
					var n int
					fmt.Sscanf(r.URL.Path, "/%d", &n)
					if _, err := io.WriteString(conn, steps[n].answer); err != nil || steps[n].closes {
						return
					}
				}
			})
			usual := &http.Transport{}
			rt := http.RoundTripper(usual)
			if i == 1 {
				rt = New(usual)
			}
			for n, step := range steps {
				all[i] = append(all[i], call(rt, step.method, fmt.Sprintf("%s/%d", s.url, n), step.body))
			}
			(&http.Client{Transport: rt}).CloseIdleConnections()
		}
		if diff := cmp.Diff(all[0], all[1]); diff != "" {
			rt.Fatalf("net/http's outcomes and ours (-, +): %s", diff)
		}
	})
}
