package httpapi

import (
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/drover-project/drover"
)

// Held bounds what the bodies of requests that are under way hold in memory: those of each caller, by its remote address, and those of
// all callers together. Bodies that are passed on as they come in do not count.
type Held struct {
	each, all int64 // bytes

	mu    sync.Mutex
	by    map[string]int64 // guarded by mu
	total int64            // guarded by mu
}

// NewHeld returns one with these bounds, in bytes.
func NewHeld(each, all int64) *Held { return &Held{each: each, all: all, by: map[string]int64{}} }

type heldKey struct{}

// Handler has the requests of a handler that Handler of this package made count.
func (h *Held) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := &share{of: h, who: r.RemoteAddr}
		defer s.give()
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), heldKey{}, s)))
	})
}

// share is what one request holds. It is used by one goroutine at a time.
type share struct {
	of   *Held
	who  string
	held int64
}

// take counts n bytes more. Errors: TooLarge for more than a caller may have at all, RateLimited while others hold too much.
func (s *share) take(n int64) error {
	h := s.of
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case s.held+n > h.each:
		return tooLargeError(h.each)
	case h.by[s.who]+n > h.each, h.total+n > h.all:
		return drover.Errorf(drover.RateLimited, "the bodies of the requests that are under way are too large together: try again in a second")
	}
	s.held += n
	h.by[s.who] += n
	h.total += n
	return nil
}

// give counts all of it no more.
func (s *share) give() {
	h := s.of
	h.mu.Lock()
	defer h.mu.Unlock()
	h.total -= s.held
	if h.by[s.who] -= s.held; h.by[s.who] == 0 {
		delete(h.by, s.who)
	}
	s.held = 0
}

// counted counts what is read of the request's body, where somebody wants it counted. Errors: TooLarge.
func counted(r *http.Request) error {
	s, ok := r.Context().Value(heldKey{}).(*share)
	if !ok {
		return nil
	}
	if r.ContentLength > s.of.each {
		return tooLargeError(s.of.each)
	}
	r.Body = &countedBody{r.Body, s}
	return nil
}

// countedBody counts what is read of it.
type countedBody struct {
	io.ReadCloser
	share *share
}

// Read reads on. Errors: those of take.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		if refused := b.share.take(int64(n)); refused != nil {
			return 0, refused
		}
	}
	return n, err
}
