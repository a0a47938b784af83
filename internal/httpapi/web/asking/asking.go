package asking

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
	"github.com/drover-project/drover/internal/httpapi/web/cookies"
	"github.com/drover-project/drover/internal/httpapi/web/static"
)

// API is the public API in this process.
type API struct{ Handler http.Handler }

// maxAnswer bounds what is read of an answer that a page is made of, in bytes.
const maxAnswer = 32 << 20

// Ask asks the API as the viewer of a page, with a body of JSON unless in is nil, or an io.Reader of bytes. It reads the answer
// into out unless that is nil. Errors: *httpapi.StatusError with the API's status and words.
func (a API) Ask(ctx context.Context, viewer *http.Request, method, path string, in, out any) error {
	answer := &answer{header: http.Header{}}
	if err := a.call(ctx, viewer, answer, method, path, in); err != nil {
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

// Read is Ask for GET, and returns the answer's headers, too.
func (a API) Read(r *http.Request, path string, out any) (http.Header, error) {
	answer := &answer{header: http.Header{}}
	if err := a.call(r.Context(), r, answer, http.MethodGet, path, nil); err != nil {
		return answer.header, err
	}
	return answer.header, json.Unmarshal(answer.kept.Bytes(), out)
}

// Follow gives what the API answers to to as it comes, until it ends. Errors: those of Ask, and those of to.
func (a API) Follow(ctx context.Context, viewer *http.Request, path string, to func([]byte) error) error {
	return a.call(ctx, viewer, &answer{header: http.Header{}, to: to}, http.MethodGet, path, nil)
}

// Pass answers with what the API has at a path, as it stands; nothing of what the browser has already. Errors: those of Ask.
func (a API) Pass(w http.ResponseWriter, viewer *http.Request, path string) error {
	got := &answer{header: http.Header{}, known: viewer.Header.Get("If-None-Match")}
	if err := a.call(viewer.Context(), viewer, got, http.MethodGet, path, nil); err != nil {
		static.Protect(w.Header())
		http.Error(w, httpapi.Message(err), httpapi.Status(err)) // a script reads it
		return nil
	}
	static.Protect(w.Header())
	for _, name := range []string{"Content-Type", "Etag"} {
		if v := got.header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	w.WriteHeader(got.status)
	_, _ = w.Write(got.kept.Bytes()) // the viewer may have left
	return nil
}

func (a API) call(ctx context.Context, viewer *http.Request, to *answer, method, path string, in any) (err error) {
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
	if token := cookies.Token(viewer); token != "" {
		r.Header.Set("X-Drover-Token", token)
	}
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if to.known != "" {
		r.Header.Set("If-None-Match", to.known)
	}
	defer func() { // a handler cuts an answer that has begun by a panic
		if cut := recover(); cut != nil {
			if e, ok := cut.(error); !ok || !errors.Is(e, http.ErrAbortHandler) {
				panic(cut)
			}
			err = fmt.Errorf("the answer of %s was cut", path)
		}
	}()
	a.Handler.ServeHTTP(to, r)
	switch {
	case to.failed != nil:
		return to.failed
	case to.status >= http.StatusBadRequest:
		return &httpapi.StatusError{Status: to.status, Err: errors.New(to.words())}
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

// Path is a path of the API with its variable parts escaped: Path("runner", id, "files") is /v1/runner/…/files.
func Path(parts ...string) string {
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return "/v1/" + strings.Join(parts, "/")
}
