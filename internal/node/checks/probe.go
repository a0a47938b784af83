package checks

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"
)

const (
	maxOutput = 3 << 10 // what of an answer is kept, in bytes
	maxAnswer = 1 << 20 // what of an answer is read, in bytes: its heads, and a body up to maxOutput
	maxHeads  = 6       // of an answer: those before the last one are interim (1xx)
)

// Network probes over the machine's network.
type Network struct{}

// Probe carries out a check of type http, grpc or tcp. An answer of 200 to 299 is well, a server of gRPC that says that it serves,
// and a connection that can be made.
func (n *Network) Probe(ctx context.Context, c *Check) (code int, output string, ok bool) {
	switch c.Type {
	case "http":
		return n.http(ctx, c)
	case "grpc":
		return n.grpc(ctx, c)
	}
	conn, err := dial(ctx, c.Address)
	if err != nil {
		return 0, "nomad: " + err.Error(), false
	}
	_ = conn.Close()
	return 0, "nomad: tcp ok", true
}

// dial connects. A probe is over before the kernel would look whether the other side still lives.
func dial(ctx context.Context, address string) (net.Conn, error) {
	d := net.Dialer{KeepAlive: -1}
	return d.DialContext(ctx, "tcp", address)
}

// http asks over a connection of its own: one that is kept would go on to a task that does not listen any more. It speaks HTTP/1.1 on
// that itself: a transport made for one request costs two thirds more CPU, and nodes carry out thousands of checks a second.
func (n *Network) http(ctx context.Context, c *Check) (code int, output string, ok bool) {
	code, body, err := ask(ctx, c)
	switch {
	case err != nil && ctx.Err() != nil:
		return code, "nomad: " + context.Cause(ctx).Error(), false
	case err != nil:
		return code, "nomad: " + err.Error(), false
	case code >= 200 && code <= 299:
		return code, "nomad: http ok", true
	}
	return code, fmt.Sprintf("nomad: http status %d: %s", code, strings.ToValidUTF8(string(body), string(utf8.RuneError))), false
}

// ask sends the check's request and reads the answer; body is the beginning of its body, and nil if all is well. Redirects are answers:
// they are not followed. After an error code may be set.
func ask(ctx context.Context, c *Check) (code int, body []byte, err error) {
	r, err := request(ctx, c)
	if err != nil {
		return 0, nil, err
	}
	conn, err := connectURL(ctx, c, r.URL)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // what waits for the other side ends then
	defer stop()
	b := takeBuffers(conn)
	defer b.giveBack()
	unsent := r.Write(b.w)
	if unsent == nil {
		unsent = b.w.Flush()
	}
	answer, err := b.head(r) // who refuses a request may answer before all of it was sent
	if err != nil && unsent != nil {
		return 0, nil, unsent
	}
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	text := io.LimitReader(answer.Body, maxOutput)
	if answer.StatusCode >= 200 && answer.StatusCode <= 299 {
		_, err = io.Copy(io.Discard, text)
	} else {
		body, err = io.ReadAll(text)
	}
	return answer.StatusCode, body, err
}

// request makes the check's request. Errors: of a method, URL or header that HTTP does not have.
func request(ctx context.Context, c *Check) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, c.Method, c.URL, strings.NewReader(c.Body))
	if err != nil {
		return nil, err
	}
	r.Close = true
	for name, values := range c.Header {
		for _, v := range values {
			if strings.EqualFold(name, "Host") {
				r.Host = v
				continue
			}
			if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(v) {
				return nil, fmt.Errorf("invalid header %q", name)
			}
			r.Header.Add(name, v)
		}
	}
	return r, nil
}

// connectURL connects to the URL's host, with TLS if it is https.
func connectURL(ctx context.Context, c *Check, u *url.URL) (net.Conn, error) {
	port := u.Port()
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("unsupported protocol scheme %q", u.Scheme)
	case port == "" && u.Scheme == "http":
		port = "80"
	case port == "":
		port = "443"
	}
	conn, err := dial(ctx, net.JoinHostPort(u.Hostname(), port))
	if err != nil || u.Scheme == "http" {
		return conn, err
	}
	name := c.TLSServerName
	if name == "" {
		name = u.Hostname()
	}
	secure := tls.Client(conn, &tls.Config{ServerName: name, InsecureSkipVerify: c.TLSSkipVerify})
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secure, nil
}

// buffers are what one request needs. They are used again: a node with thousands of checks would make garbage of them.
type buffers struct {
	limited io.LimitedReader
	r       *bufio.Reader
	w       *bufio.Writer
}

var spare = sync.Pool{New: func() any { return &buffers{r: bufio.NewReader(nil), w: bufio.NewWriter(nil)} }}

// takeBuffers returns buffers for a connection.
func takeBuffers(conn net.Conn) *buffers {
	b, _ := spare.Get().(*buffers) // there is nothing else in it
	b.limited = io.LimitedReader{R: conn, N: maxAnswer}
	b.r.Reset(&b.limited)
	b.w.Reset(conn)
	return b
}

// giveBack lets others use the buffers. Nothing may hold the answer any more.
func (b *buffers) giveBack() {
	b.limited.R = nil
	b.r.Reset(nil)
	b.w.Reset(nil)
	spare.Put(b)
}

// head reads the head of the answer behind interim ones.
func (b *buffers) head(r *http.Request) (*http.Response, error) {
	for range maxHeads {
		answer, err := http.ReadResponse(b.r, r)
		if err != nil {
			return nil, err
		}
		if answer.StatusCode >= 200 || answer.StatusCode == http.StatusSwitchingProtocols {
			return answer, nil
		}
	}
	return nil, errors.New("too many interim answers")
}
