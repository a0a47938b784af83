package httpapi

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

// Upload is a request's body for those who stream it on: if it cannot be read to its end, its sender is at fault, which
// its errors say (Invalid). Nothing may come for as long as stall at most; 0: for ever.
func Upload(w http.ResponseWriter, r *http.Request, c clock.Clock, stall time.Duration) *UploadedBody {
	return &UploadedBody{body: r.Body, ctl: http.NewResponseController(w), clock: c, stall: stall}
}

// UploadedBody is a body that Upload reads.
type UploadedBody struct {
	body  io.Reader
	ctl   *http.ResponseController
	clock clock.Clock
	stall time.Duration

	mu          sync.Mutex // held while the deadline changes
	interrupted bool       // guarded by mu
}

// Interrupt makes Read, also one under way, fail from now on: nobody wants the rest.
func (u *UploadedBody) Interrupt() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.interrupted = true
	_ = u.ctl.SetReadDeadline(u.clock.Now()) // what has none is not held up
}

var errInterrupted = drover.Errorf(drover.Canceled, "the rest of the body is not wanted")

// begin gives the next read its deadline; false if there is to be none.
func (u *UploadedBody) begin() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.stall > 0 && !u.interrupted {
		_ = u.ctl.SetReadDeadline(u.clock.Now().Add(u.stall)) // what has none cannot stall
	}
	return !u.interrupted
}

func (u *UploadedBody) unwanted() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.interrupted
}

// Read implements io.Reader.
func (u *UploadedBody) Read(p []byte) (int, error) {
	if !u.begin() {
		return 0, errInterrupted
	}
	n, err := u.body.Read(p)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF): // not ErrUnexpectedEOF
		if u.stall > 0 {
			_ = u.ctl.SetReadDeadline(time.Time{})
		}
	case u.unwanted():
		err = errInterrupted
	case u.stall > 0 && errors.Is(err, os.ErrDeadlineExceeded):
		err = drover.Errorf(drover.Invalid, "the body came in part only: then nothing for %v", u.stall)
	default:
		err = drover.Errorf(drover.Invalid, "the body came in part only: %w", err)
	}
	return n, err
}
