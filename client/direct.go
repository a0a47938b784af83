package client

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"time"
)

// direct makes the handshakes of websockets. Each takes a connection for itself, so that there is nothing to pool; here
// the caller's goroutine does all of it, where net/http hands it on through three others.
type direct struct {
	dialer net.Dialer
	others http.RoundTripper // for TLS, and by way of a proxy
}

func newDirect(others http.RoundTripper) *direct {
	return &direct{dialer: net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}, others: others} // as net/http's
}

// RoundTrip serves http.RoundTripper. Requests have no body.
func (d *direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if proxy, err := http.ProxyFromEnvironment(r); r.URL.Scheme != "http" || proxy != nil || err != nil {
		return d.others.RoundTrip(r)
	}
	ctx := r.Context()
	port := r.URL.Port()
	if port == "" {
		port = "80"
	}
	conn, err := d.dialer.DialContext(ctx, "tcp", net.JoinHostPort(r.URL.Hostname(), port))
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	res, err := ask(conn, r)
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return res, nil
}

const answerSize = 512 // bytes of most answers to a handshake; longer ones are read in turns

// ask sends the request and reads the answer's head. Its body owns the connection.
func ask(conn net.Conn, r *http.Request) (*http.Response, error) {
	var text bytes.Buffer
	if err := r.Write(&text); err != nil {
		return nil, err
	}
	if _, err := conn.Write(text.Bytes()); err != nil {
		return nil, err
	}
	br := bufio.NewReaderSize(conn, answerSize)
	res, err := http.ReadResponse(br, r) //nolint:bodyclose // the caller does
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusSwitchingProtocols {
		res.Body = &upgraded{Conn: conn, rest: br}
	} else {
		res.Body = &refusal{Reader: res.Body, conn: conn}
	}
	return res, nil
}

// upgraded is a connection of which some bytes may have been read.
type upgraded struct {
	net.Conn
	rest *bufio.Reader
}

// Read serves io.Reader.
func (u *upgraded) Read(p []byte) (int, error) {
	if n := u.rest.Buffered(); n > 0 {
		return u.rest.Read(p[:min(n, len(p))])
	}
	return u.Conn.Read(p)
}

// refusal is the body of another answer, which ends with the connection.
type refusal struct {
	io.Reader
	conn net.Conn
}

// Close serves io.Closer.
func (r *refusal) Close() error { return r.conn.Close() }

var _ io.ReadWriteCloser = (*upgraded)(nil) // package websocket needs it
