package client

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/net/http/httpguts"

	"github.com/drover-project/drover/internal/clock"
)

// direct is a transport for plain HTTP/1.1: the caller's goroutine writes the request and reads the answer, where
// net/http hands both on through three others, which costs more than a short call itself. What it does not serve
// goes by way of net/http's transport: TLS, proxies, and bodies that are long or not in memory.
//
// A server may close a connection that it has served before at any time. What came over an idle one, its end above
// all, is seen before it is used again. If it ends just then, the request is sent once more, over a new connection,
// when net/http would do that: if nothing of it was sent; or if nothing of an answer came, and the method changes
// nothing or the request has an Idempotency-Key. Never is a POST repeated that may have been carried out, nor a handshake,
// which may have started something.
type direct struct {
	usual *http.Transport // for all else; its proxies and its way to dial are ours
	idle  idle
	texts sync.Pool // of *bytes.Buffer: requests as they are sent
}

func newDirect(usual *http.Transport) *direct {
	return &direct{
		usual: usual,
		idle:  idle{clock: clock.Wall{}, conns: map[string][]*conn{}},
		texts: sync.Pool{New: func() any { return new(bytes.Buffer) }},
	}
}

// RoundTrip serves http.RoundTripper.
func (d *direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if !d.serves(r) {
		return d.usual.RoundTrip(r)
	}
	ctx, addr := r.Context(), address(r.URL)
	text := d.texts.Get().(*bytes.Buffer)
	defer d.texts.Put(text)
	text.Reset()
	unzip, err := write(text, r) // and closes the request's body
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if c := d.idle.take(addr); c != nil {
		res, err := d.ask(c, r, text.Bytes(), unzip)
		if err == nil || ctx.Err() != nil || !c.mayRepeat(r) {
			return res, err
		}
	}
	size := mostAnswers
	if upgrades(r) { // it keeps its connection for itself
		size = mostHandshakes
	}
	c, err := d.dial(ctx, addr, size)
	if err != nil {
		return nil, err
	}
	return d.ask(c, r, text.Bytes(), unzip)
}

// CloseIdleConnections is called by http.Client's.
func (d *direct) CloseIdleConnections() {
	d.idle.close()
	d.usual.CloseIdleConnections()
}

// mostBody bounds what is written before the answer is read. Longer requests need both at once: a server may answer
// before it has read them, and read no more. This much is within the buffers of two kernels.
const mostBody = 64 << 10

// serves tells whether a request is for us. One that net/http would refuse is not: it says why.
func (d *direct) serves(r *http.Request) bool {
	if r.URL.Scheme != "http" || httptrace.ContextClientTrace(r.Context()) != nil {
		return false
	}
	if noBody := r.Body == nil || r.Body == http.NoBody; !noBody && (r.GetBody == nil || r.ContentLength <= 0 || r.ContentLength > mostBody) {
		return false
	}
	if !seesEnds && !upgrades(r) || strings.ContainsFunc(r.URL.Host, func(c rune) bool { return c > unicode.MaxASCII }) {
		return false
	}
	for name, values := range r.Header {
		if !httpguts.ValidHeaderFieldName(name) {
			return false
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return false
			}
		}
	}
	if d.usual.Proxy == nil {
		return true
	}
	proxy, err := d.usual.Proxy(r)
	return proxy == nil && err == nil
}

func upgrades(r *http.Request) bool { return r.Header.Get("Upgrade") != "" }

// address is where to dial.
func address(u *url.URL) string {
	if u.Port() == "" {
		return net.JoinHostPort(u.Hostname(), "80")
	}
	return u.Host
}

// write makes the request's text. As net/http does, it asks for compression where the caller does not care.
func write(text *bytes.Buffer, r *http.Request) (unzip bool, err error) {
	if r.Method != http.MethodHead && !upgrades(r) && r.Header.Get("Accept-Encoding") == "" && r.Header.Get("Range") == "" {
		asks := *r
		asks.Header = maps.Clone(r.Header)
		asks.Header.Set("Accept-Encoding", "gzip")
		r, unzip = &asks, true
	}
	return unzip, r.Write(text)
}

func (d *direct) dial(ctx context.Context, addr string, size int) (*conn, error) {
	dial := d.usual.DialContext
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	nc, err := dial(ctx, "tcp", addr)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	}
	return newConn(nc, addr, size), nil
}

// ask sends the request over the connection and reads the head of its answer. What follows it gives the connection
// back.
func (d *direct) ask(c *conn, r *http.Request, text []byte, unzip bool) (*http.Response, error) {
	ctx := r.Context()
	stop := c.endWith(ctx)
	res, err := c.ask(r, text)
	if err != nil {
		_ = c.Close()
		if !stop() {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	if res.StatusCode == http.StatusSwitchingProtocols {
		if !stop() {
			return nil, context.Cause(ctx)
		}
		res.Body = &upgraded{c}
		return res, nil
	}
	b := &body{from: res.Body, conn: c, idle: &d.idle, ctx: ctx, stop: stop}
	if res.Body == http.NoBody {
		_ = b.end(io.EOF)
		return res, nil
	}
	res.Body = b
	if unzip {
		unzipped(res)
	}
	return res, nil
}
