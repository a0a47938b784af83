package viewers

import (
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/static"
)

// MostPages are kept up to date of one token, or without one of one address, which may be a proxy of many.
const MostPages = 250

// mostViewers are the pages that are kept up to date at a time.
const mostViewers = 1000

// Viewers counts the pages that are kept up to date.
type Viewers struct {
	mu  sync.Mutex
	all int            // guarded by mu
	by  map[string]int // guarded by mu: of each token or address
}

// Enter counts a page of the token, which may be ""; leave is called at its end. Errors: a StatusError of 429, which says tooMany, if there
// are too many.
func (v *Viewers) Enter(r *http.Request, token, tooMany string) (leave func(), err error) {
	key := token
	if key == "" {
		key, _, _ = net.SplitHostPort(r.RemoteAddr)
		key = "address " + key
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.all >= mostViewers || v.by[key] >= MostPages {
		return nil, &httpapi.StatusError{Status: http.StatusTooManyRequests, Err: errors.New(tooMany)}
	}
	if v.by == nil {
		v.by = map[string]int{}
	}
	v.all++
	v.by[key]++
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.all--
		if v.by[key]--; v.by[key] == 0 {
			delete(v.by, key)
		}
	}, nil
}

// Stream answers with what run sends as it comes. A viewer that takes nothing for patience is cut. What goes wrong after the beginning is
// told to nobody. Errors: those of run before it sent something.
func Stream(
	w http.ResponseWriter, c clock.Clock, contentType string, patience time.Duration, run func(send func([]byte) error) error,
) error {
	control, begun := http.NewResponseController(w), false
	begin := func() {
		begun = true
		static.Protect(w.Header())
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("X-Accel-Buffering", "no")
	}
	err := run(func(piece []byte) error {
		if !begun {
			begin()
		}
		_ = control.SetWriteDeadline(c.Now().Add(patience)) // not all writers of tests have deadlines
		if _, err := w.Write(piece); err != nil {
			return err
		}
		return control.Flush()
	})
	switch {
	case begun:
		return nil
	case err == nil: // there was nothing
		begin()
	}
	return err
}
