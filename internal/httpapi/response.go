package httpapi

import (
	"bufio"
	"net"
	"net/http"
)

// response remembers what was answered.
type response struct {
	http.ResponseWriter
	status   int
	hijacked bool
	bound    func() // gives the next write its deadline; nil = none
	record   *recording
	begins   func(status int) // is told before the head goes; nil = nobody is
	finish   func()           // ends the request when the head was written, which is all that is wanted; nil = the body is, too
}

func (w *response) begun() bool { return w.hijacked || w.status != 0 }

// reset drops headers that belonged to the answer that is now not given.
func (w *response) reset() {
	h := w.Header()
	h.Del("Content-Length")
	h.Del("Content-Type")
	h.Del("Content-Encoding")
	h.Del("Content-Disposition")
}

// begin notes the answer's status.
func (w *response) begin(status int) {
	w.status = status
	if w.begins != nil {
		w.begins(status)
	}
	if w.finish != nil {
		w.finish()
	}
}

// WriteHeader begins the answer.
func (w *response) WriteHeader(status int) {
	if status >= 200 && w.status == 0 || status == http.StatusSwitchingProtocols {
		w.begin(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes a piece of the body.
func (w *response) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.begin(http.StatusOK)
	}
	if w.bound != nil {
		w.bound()
	}
	return w.ResponseWriter.Write(p)
}

// Flush sends what was written.
func (w *response) Flush() { _ = w.FlushError() }

// FlushError is Flush for http.ResponseController.
func (w *response) FlushError() error {
	if w.status == 0 {
		w.begin(http.StatusOK)
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Hijack hands the connection over (websockets).
func (w *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.hijacked, w.status = true, http.StatusSwitchingProtocols
	}
	return c, rw, err
}

// Unwrap serves http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }
