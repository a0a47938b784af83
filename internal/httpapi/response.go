package httpapi

import (
	"bufio"
	"net"
	"net/http"
	"runtime/debug"
)

// response remembers what was answered, and compresses on demand.
type response struct {
	http.ResponseWriter
	status   int
	hijacked bool
	aborted  bool
	bound    func() // gives the next write its deadline; nil = none
	zip      *zipper
}

func (w *response) begun() bool { return w.hijacked || w.status != 0 || w.zip != nil && w.zip.held() }

// reset drops headers that belonged to the answer that is now not given.
func (w *response) reset() {
	h := w.Header()
	h.Del("Content-Length")
	h.Del("Content-Type")
	h.Del("Content-Encoding")
	h.Del("Content-Disposition")
}

// WriteHeader begins the answer.
func (w *response) WriteHeader(status int) {
	if status >= 200 && w.status == 0 || status == http.StatusSwitchingProtocols {
		w.status = status
	}
	if w.zip != nil && status >= 200 {
		w.zip.status = status
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes a piece of the body.
func (w *response) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	if w.bound != nil {
		w.bound()
	}
	if w.zip != nil {
		return w.zip.Write(p)
	}
	return w.ResponseWriter.Write(p)
}

// Flush sends what was written.
func (w *response) Flush() { _ = w.FlushError() }

// FlushError is Flush for http.ResponseController.
func (w *response) FlushError() error {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	if w.zip != nil {
		if err := w.zip.flush(); err != nil {
			return err
		}
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

// compress makes the body compressed from here on; the returned func ends it.
func (w *response) compress(pool *gzips) func() {
	w.zip = &zipper{w: w.ResponseWriter, pool: pool}
	w.Header().Add("Vary", "Accept-Encoding")
	return func() {
		if w.hijacked || w.aborted {
			return
		}
		z := w.zip
		w.zip = nil // what fail and recovered write goes out plain
		z.close()
	}
}

func stack() string { return string(debug.Stack()) }
