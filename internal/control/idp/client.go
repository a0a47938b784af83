package idp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/netguard"
)

// maxAnswer is how much is read of a provider's answer.
const maxAnswer = 1 << 20

// fetchEvery is how often keys are fetched at most: tokens with keys that nobody knows must not make a server ask without end.
const fetchEvery = 5 * time.Second

var (
	errSoon  = errors.New("it answered less than 5 s ago")
	errAgain = errors.New("it was asked in vain less than 5 s ago")
	errLarge = errors.New("the answer is larger than 1 MiB")
)

// client returns a context in which the libraries ask with the method's authorities, and never where the guard forbids. It outlives ctx, as
// keys are fetched later, too.
func (p *Providers) client(ctx context.Context, authorities []string) (context.Context, error) {
	guard := &netguard.Guard{What: "the identity provider's address", Key: "acl.login_allow", Private: true, Allow: p.cfg.Allow}
	var c *tls.Config
	if len(authorities) > 0 {
		pool := x509.NewCertPool()
		for _, pem := range authorities {
			if !pool.AppendCertsFromPEM([]byte(pem)) {
				return nil, drover.Errorf(drover.Invalid, "an authority of the method is no certificate in PEM")
			}
		}
		c = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	client := guard.ClientWith(p.cfg.Timeout, c)
	client.Transport = bounded{client.Transport}
	return oidc.ClientContext(context.WithoutCancel(ctx), client), nil
}

// bounded limits how much is read of each answer.
type bounded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	res.Body = &body{ReadCloser: res.Body, left: maxAnswer}
	return res, nil
}

// body fails where an answer goes on and on.
type body struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader.
func (b *body) Read(into []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLarge
	}
	n, err := b.ReadCloser.Read(into[:min(len(into), b.left)])
	b.left -= n
	return n, err
}

// seldom lets a request through every fetchEvery.
type seldom struct {
	next  http.RoundTripper
	clock clock.Clock
	mu    sync.Mutex
	last  time.Time // guarded by mu
	ok    bool      // guarded by mu: the last request was answered
}

// RoundTrip implements http.RoundTripper.
func (s *seldom) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	now := s.clock.Now()
	soon := !s.last.IsZero() && now.Sub(s.last) >= 0 && now.Sub(s.last) < fetchEvery
	if !soon {
		s.last = now
	}
	ok := s.ok
	s.mu.Unlock()
	switch {
	case soon && ok:
		return nil, errSoon
	case soon:
		return nil, errAgain
	}
	res, err := s.next.RoundTrip(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ok = err == nil && res.StatusCode == http.StatusOK
	return res, err
}
