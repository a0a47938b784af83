package image

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/registry"
)

// openRemote asks the registry for the image of linux and this machine's architecture. It downloads no layers yet. A
// request without a user name uses the logins in the agent's ~/.docker/config.json. Errors: Invalid, and those of
// registry.Error.
func (s *Store) openRemote(ctx context.Context, r Request) (*opened, error) {
	ref, err := name.ParseReference(r.Ref)
	if err != nil {
		return nil, drover.Errorf(
			drover.Invalid, `image %q is no reference (like docker.io/library/python:3), no path, and not "host": %w`, r.Ref, err,
		)
	}
	options := []remote.Option{
		remote.WithContext(ctx), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}),
		remote.WithTransport(&patient{next: s.transport(), clock: s.opts.Clock}),
	}
	if r.Username != "" {
		options = append(options, remote.WithAuth(&authn.Basic{Username: r.Username, Password: r.Password}))
	} else {
		options = append(options, remote.WithAuthFromKeychain(authn.DefaultKeychain))
	}
	img, err := remote.Image(ref, options...)
	if err != nil {
		return nil, registry.Error(r.Ref, err)
	}
	o, err := describeRemote(img)
	if err != nil {
		return nil, registry.Error(r.Ref, err)
	}
	return o, nil
}

// transport returns the configured connection to registries, or the library's default.
func (s *Store) transport() http.RoundTripper {
	if s.opts.Transport != nil {
		return s.opts.Transport
	}
	return remote.DefaultTransport
}

// describeRemote reads the image's manifest and configuration. It checks the size of the configuration before it is
// downloaded, since the library reads it whole into memory. Layers with foreign addresses are refused: following them
// would let an image make the agent send requests into its own network.
func describeRemote(img v1.Image) (*opened, error) {
	digest, err := img.Digest()
	if err != nil {
		return nil, err
	}
	manifest, err := img.Manifest()
	if err != nil {
		return nil, err
	}
	if manifest.Config.Size > maxDocument {
		return nil, drover.Errorf(drover.TooLarge, "its configuration has %d bytes, at most %d are read", manifest.Config.Size, maxDocument)
	}
	o := &opened{digest: digest.String(), remote: true}
	if o.config, err = img.ConfigFile(); err != nil {
		return nil, err
	}
	layers, err := img.Layers()
	if err != nil {
		return nil, err
	}
	for i, l := range layers {
		if len(manifest.Layers[i].URLs) > 0 { // they could name what only this machine reaches
			return nil, drover.Errorf(drover.Invalid, "its layer %d is at another address, which is not followed", i+1)
		}
		o.layers = append(o.layers, l.Compressed)
	}
	return o, nil
}

// patient waits as long as a registry asks for, if that is not too long: trying again earlier would be refused too.
type patient struct {
	next  http.RoundTripper
	clock clock.Clock
}

// longestWait is the longest Retry-After that is obeyed. For longer ones the caller gets the answer, and decides itself.
const longestWait = time.Minute

// RoundTrip sends the request, and once more after the wait that the answer asks for.
func (p *patient) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := p.next.RoundTrip(r)
	if err != nil || answer.StatusCode != http.StatusTooManyRequests && answer.StatusCode != http.StatusServiceUnavailable || r.Body != nil {
		return answer, err
	}
	seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After")) // a date, which is rare, counts as nothing
	wait := time.Duration(seconds) * time.Second
	if wait <= 0 || wait > longestWait {
		return answer, nil
	}
	_ = answer.Body.Close() // it says nothing more
	if err := p.wait(r.Context(), wait); err != nil {
		return nil, err
	}
	return p.next.RoundTrip(r)
}

// wait sleeps for d. It returns an error that wraps the context's cause if ctx ends first.
func (p *patient) wait(ctx context.Context, d time.Duration) error {
	if !clock.Sleep(ctx, p.clock, d) {
		return fmt.Errorf("waiting as the registry asks: %w", context.Cause(ctx))
	}
	return nil
}
