package registry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

// Config of a Client.
type Config struct {
	Clock     clock.Clock
	Transport http.RoundTripper // nil = the library's, which knows the environment's proxies
	// File keeps what Verify found, for clients after this one; its folder is made. "" keeps nothing.
	File string
}

// Client reads from registries. It is for any number of goroutines.
type Client struct {
	cfg Config

	mu    sync.Mutex
	found map[string]Signed // by name and key, see place; nil until it was read; guarded by mu
}

// New returns a Client. No I/O.
func New(cfg Config) *Client {
	if cfg.Transport == nil {
		cfg.Transport = remote.DefaultTransport
	}
	return &Client{cfg: cfg}
}

// Account is one at a registry; of the zero value the process's own is taken, that is what ~/.docker/config.json says.
type Account struct{ Username, Password, Token string }

const (
	// patience bounds all that is asked about one image.
	patience = 20 * time.Second
	// maxAnswer bounds each answer, in bytes. The largest are indexes, of some thousand.
	maxAnswer = 4 << 20
)

// options are those of the library for one image.
func (c *Client) options(ctx context.Context, a Account) []remote.Option {
	options := []remote.Option{
		remote.WithContext(ctx), remote.WithTransport(bounded{c.cfg.Transport}),
		remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}),
		remote.WithRetryStatusCodes(), // who waits for us decides
	}
	if a == (Account{}) {
		return append(options, remote.WithAuthFromKeychain(authn.DefaultKeychain))
	}
	return append(options, remote.WithAuth(authn.FromConfig(authn.AuthConfig{
		Username: a.Username, Password: a.Password, IdentityToken: a.Token,
	})))
}

// Resolve returns the digest that the registry has under the name: of an image, or of an index of images for several machines. Errors:
// Invalid for what is no name, and those of Error.
func (c *Client) Resolve(ctx context.Context, ref string, a Account) (digest string, err error) {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return "", drover.Errorf(drover.Invalid, "image %q is no reference such as docker.io/library/python:3: %w", ref, err)
	}
	if d, ok := parsed.(name.Digest); ok {
		return d.DigestStr(), nil
	}
	ctx, cancel := c.cfg.Clock.WithTimeout(ctx, patience)
	defer cancel()
	options := c.options(ctx, a)
	head, err := remote.Head(parsed, options...) // registries that count pulls do not count these
	if err == nil {
		return head.Digest.String(), nil
	}
	var answer *transport.Error
	refused := errors.As(err, &answer) && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden)
	if refused || ctx.Err() != nil {
		return "", Error(ref, err)
	}
	whole, err := remote.Get(parsed, options...) // not all registries know HEAD, and it does not tell what is wrong
	if err != nil {
		return "", Error(ref, err)
	}
	return whole.Digest.String(), nil
}

// Error says what went wrong with a registry and whether trying again helps. Errors: NotFound (it has no such image), Forbidden (it
// refuses), Unavailable (the network, or the registry), and the code that err has. A name of no host is Unavailable, too: Nomad tries again
// as well, as names appear late where a machine boots.
func Error(ref string, err error) error {
	if ours := (*drover.Error)(nil); errors.As(err, &ours) {
		return drover.Errorf(ours.Code, "image %s: %w", ref, err)
	}
	var answer *transport.Error
	if !errors.As(err, &answer) {
		if strings.Contains(err.Error(), "no child with platform") {
			return drover.Errorf(drover.NotFound, "image %s: the registry has it, but not for linux/%s", ref, runtime.GOARCH)
		}
		return drover.Errorf(drover.Unavailable, "image %s: reaching the registry: %w", ref, err)
	}
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return drover.Errorf(drover.Forbidden, "image %s: the registry refuses access (wrong or missing login, or no such image): %w", ref, err)
	case http.StatusNotFound:
		return drover.Errorf(drover.NotFound, "image %s: the registry does not have it: %w", ref, err)
	}
	return drover.Errorf(drover.Unavailable, "image %s: %w", ref, err)
}

// bounded ends answers that are larger than documents are.
type bounded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(r)
	if err == nil {
		answer.Body = &body{answer.Body, maxAnswer}
	}
	return answer, err
}

type body struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, drover.Errorf(drover.TooLarge, "the registry's answer is larger than %d bytes", maxAnswer)
	}
	return n, err
}
