package names

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/drover-project/drover/service"
)

// Finder finds services for the name server.
type Finder struct {
	Faces func() (http.Handler, error)
	Token string // dns.token; "" = as anybody
}

// Find asks the faces where a service is, so that names are told to nobody who could not read them there: with dns.token, or as
// anybody. A server answers from its own state; an agent without server asks one.
func (f Finder) Find(ctx context.Context, namespace, name string) (found []*service.Registration, err error) {
	faces, err := f.Faces()
	if err != nil {
		return nil, err
	}
	query := url.Values{"namespace": {namespace}, "stale": {""}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/v1/service/"+url.PathEscape(name)+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	r.RemoteAddr, r.RequestURI = "127.0.0.1:0", r.URL.RequestURI()
	if f.Token != "" {
		r.Header.Set("X-Nomad-Token", f.Token)
	}
	w := &kept{header: http.Header{}, status: http.StatusOK}
	faces.ServeHTTP(w, r)
	switch w.status {
	case http.StatusOK:
		err = json.Unmarshal(w.body.Bytes(), &found)
	case http.StatusForbidden, http.StatusNotFound, http.StatusBadRequest: // who may not know, or asks for what cannot be
	default:
		err = errors.New(w.body.String())
	}
	if err != nil {
		return nil, fmt.Errorf("looking for service %s: %w", name, err)
	}
	return found, nil
}

// kept is an answer in memory.
type kept struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (k *kept) Header() http.Header { return k.header }

// WriteHeader implements http.ResponseWriter.
func (k *kept) WriteHeader(status int) { k.status = status }

// Write implements http.ResponseWriter.
func (k *kept) Write(p []byte) (int, error) { return k.body.Write(p) }

// SetReadDeadline is for http.ResponseController: the body is none, and the context ends the request.
func (k *kept) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline is for http.ResponseController.
func (k *kept) SetWriteDeadline(time.Time) error { return nil }

// Flush implements http.Flusher.
func (k *kept) Flush() {}
