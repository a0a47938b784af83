package httpapi

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"sync"
)

// gzipFrom is the size from which compressing pays.
const gzipFrom = 2 << 10

// gzips keeps writers: each holds some 800 KiB.
type gzips struct{ pool sync.Pool }

func newGzips() *gzips {
	return &gzips{sync.Pool{New: func() any {
		z, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // the level is valid
		return z
	}}}
}

func acceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, q, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(name, "gzip") {
			return !strings.HasPrefix(strings.ReplaceAll(q, " ", ""), "q=0") || strings.HasPrefix(strings.ReplaceAll(q, " ", ""), "q=0.")
		}
	}
	return false
}

// zipper holds the first bytes of a body back: a short one is sent as it is.
type zipper struct {
	w      http.ResponseWriter
	pool   *gzips
	status int
	begin  []byte
	z      *gzip.Writer
	plain  bool
	sent   bool
}

func (z *zipper) held() bool { return len(z.begin) > 0 || z.status != 0 || z.sent }

// Write compresses p once there is enough of it.
func (z *zipper) Write(p []byte) (int, error) {
	switch {
	case z.plain:
		return z.w.Write(p)
	case z.z != nil:
		return z.z.Write(p)
	case len(z.begin)+len(p) < gzipFrom:
		z.begin = append(z.begin, p...)
		return len(p), nil
	}
	if z.w.Header().Get("Content-Encoding") != "" || incompressible(z.w.Header().Get("Content-Type")) {
		if err := z.flush(); err != nil {
			return 0, err
		}
		return z.w.Write(p)
	}
	z.start()
	if _, err := z.z.Write(z.begin); err != nil {
		return 0, err
	}
	z.begin = nil
	return z.z.Write(p)
}

func incompressible(contentType string) bool {
	return strings.HasPrefix(contentType, "application/octet-stream") || strings.HasPrefix(contentType, "application/zip") ||
		strings.HasPrefix(contentType, "image/")
}

func (z *zipper) start() {
	h := z.w.Header()
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", http.DetectContentType(z.begin))
	}
	h.Set("Content-Encoding", "gzip")
	h.Del("Content-Length")
	z.head()
	z.z = z.pool.pool.Get().(*gzip.Writer)
	z.z.Reset(z.w)
}

func (z *zipper) head() {
	if z.status != 0 && !z.sent {
		z.w.WriteHeader(z.status)
	}
	z.sent = true
}

// flush sends what is held; an answer flushed before it was long enough stays plain.
func (z *zipper) flush() error {
	if z.z != nil {
		return z.z.Flush()
	}
	if z.plain {
		return nil
	}
	z.plain = true
	z.head()
	_, err := z.w.Write(z.begin)
	z.begin = nil
	return err
}

func (z *zipper) close() {
	if z.z != nil {
		_ = z.z.Close() // fails only when the client is gone
		z.z.Reset(io.Discard)
		z.pool.pool.Put(z.z)
		z.z = nil
		return
	}
	if !z.plain && z.held() {
		_ = z.flush()
	}
}
