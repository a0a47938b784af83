package docker

import (
	"errors"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/registry/registrytest"
)

// TestSignedImages: the daemon pulls by the digest that was signed; what it has under the name counts for nothing.
func TestSignedImages(t *testing.T) {
	t.Parallel()
	r, signer := registrytest.New(t, "", ""), registrytest.NewSigner(t, "")
	good := program(t)
	ref, digest := r.Push(t, "app:1", good)
	_, evil := r.Push(t, "app:2", program(t))
	b := newBench(t)
	start := func(config map[string]any, keys ...string) (driver.Handle, error) {
		all := map[string]any{"image": ref}
		for k, v := range config {
			all[k] = v
		}
		spec := b.spec(t, all)
		spec.SignedBy, spec.Namespace = keys, "web"
		return b.Start(t.Context(), spec)
	}
	refused := func(err error, want string) {
		t.Helper()
		require.Equal(t, drover.Forbidden, drover.CodeOf(err), "%v", err)
		require.ErrorContains(t, err, `namespace "web" runs signed images only: `+want)
		var start *driver.StartError
		require.True(t, errors.As(err, &start) && !start.Recoverable, "it does not pass by itself")
	}
	_, err := start(nil, signer.PEM)
	refused(err, "image "+ref+": it must be signed by one of the keys")
	_, err = start(map[string]any{"load": "x.tar"}, signer.PEM)
	refused(err, "load: nobody signed what is in an archive")

	// The daemon has another image under the name.
	docker := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("docker", append([]string{"-H", b.cfg.Endpoint}, args...)...).CombinedOutput()
		require.NoError(t, err, string(out))
		return strings.TrimSpace(string(out))
	}
	docker("pull", "-q", r.Host+"/app@"+evil.String())
	docker("tag", r.Host+"/app@"+evil.String(), ref)
	r.Sign(t, signer, "app", digest)
	// And the registry moves the tag once it was asked what it means.
	swapped := false
	r.Misbehave(func(_ http.ResponseWriter, q *http.Request) bool {
		if strings.HasSuffix(q.URL.Path, "/manifests/1") {
			if swapped {
				q.URL.Path = "/v2/app/manifests/2"
			}
			swapped = true
		}
		return false
	})
	h, err := start(nil, signer.PEM)
	require.NoError(t, err)
	_, err = h.Wait(t.Context())
	require.NoError(t, err)
	config, err := good.ConfigName()
	require.NoError(t, err)
	image := docker("inspect", "--format", "{{.Image}}", h.(*handle).box.id)
	require.Contains(t, []string{config.String(), digest.String()}, image, "the container is of the image that was signed")
	require.NoError(t, h.Destroy(t.Context()))
	docker("rmi", ref)
}
