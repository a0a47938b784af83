package httpapi

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// Slow peers must not hold a request for ever. net/http's own timeouts bound a whole request, which long polls and
// streams are not for; so the body gets a deadline that ends with it, and each write one of its own.

// bodySpeed is the slowest upload that is waited for, in bytes a second.
const bodySpeed = 64 << 10

// timed gives the request's body a deadline: the timeout, and a second for each 64 KiB that it may have.
func (e *endpoint) timed(w http.ResponseWriter, r *http.Request) {
	ctl := http.NewResponseController(w)
	// Writers without deadlines (tests) cannot hang either; so these errors do not matter.
	_ = ctl.SetWriteDeadline(time.Time{}) // the last request's on this connection
	limit := e.bodyLimit()
	if r.ContentLength == 0 || r.Body == nil || e.route.Stream || limit < 0 {
		return
	}
	timeout := e.BodyTimeout + time.Duration(limit/bodySpeed)*time.Second
	if ctl.SetReadDeadline(e.Clock.Now().Add(timeout)) != nil {
		return
	}
	r.Body = &timedBody{ReadCloser: r.Body, done: sync.OnceFunc(func() { _ = ctl.SetReadDeadline(time.Time{}) })}
}

// timedBody takes the deadline away when the body was read: the connection is then watched for the client's going,
// which a deadline would look like.
type timedBody struct {
	io.ReadCloser
	done func()
}

// Read reads on. After another error than the end the deadline stays: net/http wants to drain the rest.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.done()
	}
	return n, err
}
