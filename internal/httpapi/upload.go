package httpapi

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"drover"
	"drover/internal/clock"
)

// Upload is a request's body for those who stream it on: if it cannot be read to its end, its sender is at fault, which
// its errors say (Invalid). Nothing may come for as long as stall at most; 0: for ever.
func Upload(w http.ResponseWriter, r *http.Request, c clock.Clock, stall time.Duration) io.Reader {
	return &upload{r.Body, http.NewResponseController(w), c, stall}
}

type upload struct {
	body  io.Reader
	ctl   *http.ResponseController
	clock clock.Clock
	stall time.Duration
}

// Read implements io.Reader.
func (u *upload) Read(p []byte) (int, error) {
	if u.stall > 0 {
		_ = u.ctl.SetReadDeadline(u.clock.Now().Add(u.stall)) // what has none cannot stall
	}
	n, err := u.body.Read(p)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF): // not ErrUnexpectedEOF
		if u.stall > 0 {
			_ = u.ctl.SetReadDeadline(time.Time{})
		}
	case u.stall > 0 && errors.Is(err, os.ErrDeadlineExceeded):
		err = drover.Errorf(drover.Invalid, "the body came in part only: then nothing for %v", u.stall)
	default:
		err = drover.Errorf(drover.Invalid, "the body came in part only: %w", err)
	}
	return n, err
}
