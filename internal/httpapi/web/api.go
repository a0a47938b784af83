package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/drover-project/drover/internal/httpapi"
)

// maxAnswer bounds what is read of an answer that a page is made of, in bytes.
const maxAnswer = 32 << 20

// ask asks the API as the viewer of a page, with a body of JSON unless in is nil, or an io.Reader of bytes, and reads the answer into out
// unless that is nil.
// Errors: *httpapi.StatusError with the API's status and words.
func (f *Face) ask(ctx context.Context, viewer *http.Request, method, path string, in, out any) error {
	answer := &answer{header: http.Header{}}
	if err := f.call(ctx, viewer, answer, method, path, in); err != nil {
		return err
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(answer.kept.Bytes(), out); err != nil {
		return fmt.Errorf("reading the answer of %s: %w", path, err)
	}
	return nil
}

// read is ask for GET, and returns the answer's headers, too.
func (f *Face) read(r *http.Request, path string, out any) (http.Header, error) {
	answer := &answer{header: http.Header{}}
	if err := f.call(r.Context(), r, answer, http.MethodGet, path, nil); err != nil {
		return answer.header, err
	}
	return answer.header, json.Unmarshal(answer.kept.Bytes(), out)
}

// follow gives what the API answers to to as it comes, until it ends. Errors: those of ask, and those of to.
func (f *Face) follow(ctx context.Context, viewer *http.Request, path string, to func([]byte) error) error {
	return f.call(ctx, viewer, &answer{header: http.Header{}, to: to}, http.MethodGet, path, nil)
}

// pass answers with what the API has at a path, as it stands; nothing of what the browser has already. Errors: those of ask.
func (f *Face) pass(w http.ResponseWriter, viewer *http.Request, path string) error {
	a := &answer{header: http.Header{}, known: viewer.Header.Get("If-None-Match")}
	if err := f.call(viewer.Context(), viewer, a, http.MethodGet, path, nil); err != nil {
		protect(w.Header())
		http.Error(w, httpapi.Message(err), httpapi.Status(err)) // a script reads it
		return nil
	}
	protect(w.Header())
	for _, name := range []string{"Content-Type", "Etag"} {
		if v := a.header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.kept.Bytes()) // the viewer may have left
	return nil
}

func (f *Face) call(ctx context.Context, viewer *http.Request, a *answer, method, path string, in any) (err error) {
	var body io.Reader = http.NoBody
	if raw, ok := in.(io.Reader); ok {
		body, in = raw, nil
	}
	if in != nil {
		content, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(content)
	}
	r, err := http.NewRequestWithContext(ctx, method, path, body)
	if err != nil {
		return err
	}
	r.Host, r.RemoteAddr, r.RequestURI, r.TLS = viewer.Host, viewer.RemoteAddr, path, viewer.TLS
	if token := tokenOf(viewer); token != "" {
		r.Header.Set("X-Drover-Token", token)
	}
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if a.known != "" {
		r.Header.Set("If-None-Match", a.known)
	}
	defer func() { // a handler cuts an answer that has begun by a panic
		if cut := recover(); cut != nil {
			if e, ok := cut.(error); !ok || !errors.Is(e, http.ErrAbortHandler) {
				panic(cut)
			}
			err = fmt.Errorf("the answer of %s was cut", path)
		}
	}()
	f.API.ServeHTTP(a, r)
	switch {
	case a.failed != nil:
		return a.failed
	case a.status >= http.StatusBadRequest:
		return &httpapi.StatusError{Status: a.status, Err: errors.New(a.words())}
	}
	return nil
}

// answer takes an answer of the API in this process.
type answer struct {
	header http.Header
	status int
	kept   bytes.Buffer       // of answers that are read whole, and of errors
	to     func([]byte) error // nil: the answer is kept
	known  string             // the tag of what the asker has already
	failed error
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= http.StatusOK {
		a.status = status
	}
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	switch {
	case a.failed != nil:
		return 0, a.failed
	case a.to != nil && a.status < http.StatusBadRequest:
		a.failed = a.to(p)
	case a.kept.Len()+len(p) > maxAnswer:
		a.failed = errors.New("the answer is too long for a page")
	default:
		_, a.failed = a.kept.Write(p)
	}
	if a.failed != nil {
		return 0, a.failed
	}
	return len(p), nil
}

// Flush implements http.Flusher: nothing is held back.
func (a *answer) Flush() {}

// words are those of an error: native answers have them in JSON, Nomad's are text.
func (a *answer) words() string {
	var body struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(a.kept.Bytes(), &body) == nil && body.Message != "" {
		return body.Message
	}
	if words := strings.TrimSpace(a.kept.String()); words != "" {
		return words
	}
	return http.StatusText(a.status)
}

// apiPath is a path of the API with its variable parts escaped: apiPath("runner", id, "files") is /v1/runner/…/files.
func apiPath(parts ...string) string {
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return "/v1/" + strings.Join(parts, "/")
}
