package fastpath

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
)

// body is an answer's. At its end the connection is free for the next request; closed before, it closes that.
type body struct {
	from io.Reader
	conn *conn
	idle *idle
	ctx  context.Context // the request's: the answer ends with it
	stop func() bool     // that

	mu   sync.Mutex // guards over, err
	over bool
	err  error // what reading says when it is over
}

var errClosed = errors.New("reading an answer that was closed")

// Read serves io.Reader.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	over, err := b.over, b.err
	b.mu.Unlock()
	if over {
		return 0, err
	}
	n, err := b.from.Read(p)
	if err != nil {
		err = b.end(err)
	}
	return n, err
}

// Close serves io.Closer. It may be called while another goroutine reads.
func (b *body) Close() error {
	_ = b.end(errClosed)
	return nil
}

// end ends it once, and returns how it ended.
func (b *body) end(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return b.err
	}
	lived := b.stop()
	if complete := errors.Is(err, io.EOF); complete && lived && b.conn.free() {
		b.conn.served = true
		b.idle.put(b.conn)
	} else {
		_ = b.conn.Close()
		if !complete && !lived {
			err = context.Cause(b.ctx)
		}
	}
	b.over, b.err = true, err
	return err
}

// unzipped reads a compressed answer as if it had been none, if it is one.
func unzipped(res *http.Response) {
	if !strings.EqualFold(res.Header.Get("Content-Encoding"), "gzip") {
		return
	}
	res.Header.Del("Content-Encoding")
	res.Header.Del("Content-Length")
	res.ContentLength, res.Uncompressed = -1, true
	res.Body = &gzipped{ReadCloser: res.Body}
}

// gzipped decompresses what it reads.
type gzipped struct {
	io.ReadCloser
	plain *gzip.Reader // from the first Read on
}

// Read serves io.Reader.
func (g *gzipped) Read(p []byte) (n int, err error) {
	if g.plain == nil {
		if g.plain, err = gzip.NewReader(g.ReadCloser); err != nil {
			return 0, err
		}
	}
	return g.plain.Read(p)
}

// upgraded is a connection of which some bytes may have been read.
type upgraded struct{ *conn }

// Read serves io.Reader.
func (u *upgraded) Read(p []byte) (int, error) {
	if n := u.answer.Buffered(); n > 0 {
		return u.answer.Read(p[:min(n, len(p))])
	}
	return u.Conn.Read(p)
}

var _ io.ReadWriteCloser = (*upgraded)(nil) // package websocket needs it
