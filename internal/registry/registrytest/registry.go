package registrytest

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Registry is a registry of this process.
type Registry struct {
	Host  string // 127.0.0.1:port
	Asked atomic.Int64

	inner http.Handler
	fault atomic.Pointer[func(w http.ResponseWriter, r *http.Request) bool]
	close func()
}

// New starts a registry; of a name that is not "" it asks for that user and password.
func New(t *testing.T, user, password string) *Registry {
	t.Helper()
	r := &Registry{inner: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.Asked.Add(1)
		if u, p, _ := q.BasicAuth(); user != "" && (u != user || p != password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`)
			return
		}
		if f := r.fault.Load(); f != nil && (*f)(w, q) {
			return
		}
		r.inner.ServeHTTP(w, q)
	}))
	t.Cleanup(server.Close)
	r.close = server.Close
	r.Host = strings.TrimPrefix(server.URL, "http://")
	return r
}

// Stop ends the registry before its test ends.
func (r *Registry) Stop() { r.close() }

// Misbehave has f answer requests first; it reports whether it did.
func (r *Registry) Misbehave(f func(w http.ResponseWriter, r *http.Request) bool) { r.fault.Store(&f) }

// Behave ends that.
func (r *Registry) Behave() { r.fault.Store(nil) }

// Push stores an image or an index under a name such as "app:1", and returns its reference and digest.
func (r *Registry) Push(t *testing.T, as string, what remote.Taggable, options ...remote.Option) (ref string, digest v1.Hash) {
	t.Helper()
	parsed, err := name.ParseReference(r.Host + "/" + as)
	must(t, err)
	switch x := what.(type) {
	case v1.ImageIndex:
		must(t, remote.WriteIndex(parsed, x, options...))
		digest, err = x.Digest()
	case v1.Image:
		must(t, remote.Write(parsed, x, options...))
		digest, err = x.Digest()
	default:
		t.Fatalf("%T is neither an image nor an index", what)
	}
	must(t, err)
	return parsed.String(), digest
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
