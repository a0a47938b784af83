package peercall

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/drover-project/drover"
)

const (
	// Prefix is where a Mux is served.
	Prefix = "/drover/peer/"
	// ServerHeader is the id of the server that asks.
	ServerHeader = "Drover-Server"

	codeHeader  = "Drover-Code" // of an error, whose message is the body
	contentType = "application/msgpack"

	// MaxBody bounds an argument and a result, in bytes.
	MaxBody = 128 << 20
)

type (
	connKey struct{}
	fromKey struct{}
)

// ConnContext marks the requests of a connection as those of a server. It is for http.Server.ConnContext, where only Forward
// connections are served.
func ConnContext(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, true)
}

// Of returns which server asks, if the request came over a Forward connection. The id is empty where it did not say.
func Of(ctx context.Context) (id string, ok bool) {
	if ok, _ = ctx.Value(connKey{}).(bool); !ok {
		return "", false
	}
	id, _ = ctx.Value(fromKey{}).(string)
	return id, true
}

// Identified has Of return the id in the request's header. The header of who is no server is dropped.
func Identified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := Of(r.Context()); ok {
			r = r.WithContext(context.WithValue(r.Context(), fromKey{}, r.Header.Get(ServerHeader)))
		}
		r.Header.Del(ServerHeader)
		next.ServeHTTP(w, r)
	})
}

// Mux serves the procedures that other servers may call. All are registered before it serves.
type Mux struct {
	procedures map[string]func(ctx context.Context, from string, in []byte) ([]byte, error)
}

// NewMux returns one without procedures.
func NewMux() *Mux {
	return &Mux{map[string]func(context.Context, string, []byte) ([]byte, error){}}
}

// Handle registers a procedure. f is told which server calls; its context ends when that one goes away. It panics if the name is taken.
func Handle[In, Out any](m *Mux, procedure string, f func(ctx context.Context, from string, in In) (Out, error)) {
	if m.procedures[procedure] != nil {
		panic("peercall: procedure " + procedure + " is registered twice")
	}
	m.procedures[procedure] = func(ctx context.Context, from string, data []byte) ([]byte, error) {
		var in In
		if err := Unmarshal(data, &in); err != nil {
			return nil, drover.Errorf(drover.Invalid, "the argument of %s: %w", procedure, err)
		}
		out, err := f(ctx, from, in)
		if err != nil {
			return nil, err
		}
		return Marshal(out)
	}
}

// ServeHTTP implements http.Handler: only for servers.
func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	from, ok := Of(r.Context())
	procedure := strings.TrimPrefix(r.URL.Path, Prefix)
	f := m.procedures[procedure]
	switch {
	case !ok:
		fail(w, drover.Errorf(drover.Forbidden, "only servers may call this"))
		return
	case f == nil || r.Method != http.MethodPost:
		fail(w, drover.Errorf(drover.NotImplemented, "this server knows no procedure %q", procedure))
		return
	}
	in, err := readAll(http.MaxBytesReader(w, r.Body, MaxBody), r.ContentLength)
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			err = drover.Errorf(drover.TooLarge, "the argument of %s has more than %d bytes", procedure, MaxBody)
		}
		fail(w, err)
		return
	}
	out, err := f(r.Context(), from, in)
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(out) // who asked may be gone
}

func fail(w http.ResponseWriter, err error) {
	w.Header().Set(codeHeader, drover.CodeOf(err).String())
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusInternalServerError)
	_, _ = io.WriteString(w, err.Error()) // who asked may be gone
}
