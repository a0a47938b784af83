package fastpath

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

// Transport is an http.RoundTripper for plain HTTP/1.1. The caller's goroutine writes the request and reads the answer,
// where net/http passes both through three others. It is safe for use by several goroutines.
//
// A server may close a connection that it has served before at any time. What came over an idle connection, its end above all,
// is seen before that connection is used again. If the connection ends just then, the request is sent once more over a new one
// in the cases in which net/http would do that. These are: nothing of the request was sent; or nothing of an answer came, and
// the method changes nothing or the request has an Idempotency-Key. A POST that may have been carried out is never repeated.
// Neither is a handshake, which may have started something.
type Transport struct {
	fallback *http.Transport // for all else; its proxies and its way to dial are ours
	plain    bool            // the fallback has no setting that we do not know
	idle     idle
	texts    sync.Pool // of *bytes.Buffer: requests as they are sent
}

// New returns a transport that passes what it does not serve to the fallback, and dials and chooses proxies as that does.
// A nil fallback is a copy of http.DefaultTransport. With a fallback that limits connections, the wait for an answer's head
// or the use of connections or compression, all requests go to the fallback.
func New(fallback *http.Transport) *Transport {
	if fallback == nil {
		fallback = new(http.Transport)
		if std, ok := http.DefaultTransport.(*http.Transport); ok {
			fallback = std.Clone()
		}
		fallback.MaxIdleConnsPerHost = keptOpen
	}
	return &Transport{
		fallback: fallback,
		plain: !fallback.DisableKeepAlives && !fallback.DisableCompression &&
			fallback.MaxConnsPerHost == 0 && fallback.ResponseHeaderTimeout == 0,
		idle:  idle{clock: clock.Wall{}, conns: map[string][]*conn{}},
		texts: sync.Pool{New: func() any { return new(bytes.Buffer) }},
	}
}

// RoundTrip serves http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !t.serves(r) {
		return t.fallback.RoundTrip(r)
	}
	ctx, addr := r.Context(), address(r.URL)
	text := t.texts.Get().(*bytes.Buffer)
	defer t.texts.Put(text)
	text.Reset()
	unzip, err := write(text, r) // and closes the request's body
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if c := t.idle.take(addr); c != nil {
		res, err := t.ask(c, r, text.Bytes(), unzip)
		if err == nil || ctx.Err() != nil || !c.mayRepeat(r) {
			return res, err
		}
	}
	size := mostAnswers
	if upgrades(r) { // it keeps its connection for itself
		size = mostHandshakes
	}
	c, err := t.dial(ctx, addr, size)
	if err != nil {
		return nil, err
	}
	return t.ask(c, r, text.Bytes(), unzip)
}

// CloseIdleConnections is called by http.Client's.
func (t *Transport) CloseIdleConnections() {
	t.idle.close()
	t.fallback.CloseIdleConnections()
}

// mostBody bounds what is written before the answer is read. Longer requests need both at once: a server may answer
// before it has read them, and read no more. This much is within the buffers of two kernels.
const mostBody = 64 << 10

// serves tells whether a request is for us. One that net/http would refuse is not: it says why.
func (t *Transport) serves(r *http.Request) bool {
	if !t.plain || r.URL.Scheme != "http" || httptrace.ContextClientTrace(r.Context()) != nil {
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
	if t.fallback.Proxy == nil {
		return true
	}
	proxy, err := t.fallback.Proxy(r)
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

func (t *Transport) dial(ctx context.Context, addr string, size int) (*conn, error) {
	dial := t.fallback.DialContext
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
func (t *Transport) ask(c *conn, r *http.Request, text []byte, unzip bool) (*http.Response, error) {
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
	b := &body{from: res.Body, conn: c, idle: &t.idle, ctx: ctx, stop: stop}
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
