package replay

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// Most is how much of a body is kept, in bytes.
const Most = 64 << 10

// Body is a request's body that stays open until the request is answered: a failed attempt must not close it. A short body is kept
// as far as it was read. A nil Body is that of a request without one.
type Body struct {
	from  io.ReadCloser
	ended atomic.Bool
	long  atomic.Bool // more was read than is kept: then nothing is

	mu   sync.Mutex // guards kept; held while it is read
	kept []byte
}

// Keep keeps a body. A body that is kept already and of which nothing was read by this reader is not kept twice.
func Keep(from io.ReadCloser) *Body {
	if from == nil || from == http.NoBody {
		return nil
	}
	if r, ok := from.(*reader); ok && r.at == 0 {
		return r.of
	}
	return &Body{from: from}
}

// Whole reports whether it can be read from its beginning.
func (b *Body) Whole() bool { return b == nil || !b.long.Load() }

// Reader returns the body from its beginning. Closing it leaves the body open for another time.
func (b *Body) Reader() io.ReadCloser {
	if b == nil {
		return http.NoBody
	}
	return &reader{of: b}
}

// End closes the body: the request was answered.
func (b *Body) End() {
	if b != nil {
		b.ended.Store(true)
		_ = b.from.Close() // nobody reads it any more
	}
}

// read reads the bytes from the offset on.
func (b *Body) read(p []byte, from int) (n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.ended.Load():
		return 0, http.ErrBodyReadAfterClose
	case from < len(b.kept):
		return copy(p, b.kept[from:]), nil
	}
	n, err = b.from.Read(p)
	if b.long.Load() || len(b.kept)+n > Most {
		b.long.Store(true)
		b.kept = nil
	} else {
		b.kept = append(b.kept, p[:n]...)
	}
	return n, err
}

// reader reads it once.
type reader struct {
	of     *Body
	at     int // owned by who reads
	closed atomic.Bool
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if r.closed.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := r.of.read(p, r.at)
	r.at += n
	return n, err
}

// Close implements io.Closer.
func (r *reader) Close() error {
	r.closed.Store(true)
	return nil
}
