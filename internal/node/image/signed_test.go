package image

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/registry/registrytest"
)

// words is the file f of an image.
func words(t *testing.T, r *Rootfs) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.Lowers[1], "f"))
	require.NoError(t, err)
	return string(text)
}

func TestSignedImages(t *testing.T) {
	t.Parallel()
	r, signer, other := registrytest.New(t, "", ""), registrytest.NewSigner(t, ""), registrytest.NewSigner(t, "")
	local := &daemon{}
	s := NewStore(Options{Dir: t.TempDir(), Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler), Local: local})
	ref, digest := r.Push(t, "x:1", testImage(t, archive(t, entry{name: "f", text: "good"})))
	get := func(s *Store, keys ...string) (*Rootfs, error) {
		return s.Prepare(t.Context(), Request{Ref: ref, SignedBy: keys, Namespace: "web"})
	}
	_, err := get(s, signer.PEM)
	require.Equal(t, drover.Forbidden, drover.CodeOf(err))
	require.ErrorContains(t, err, `namespace "web" runs signed images only: image `+ref)
	layers, err := filepath.Glob(filepath.Join(s.opts.Dir, "layers", "*"))
	require.NoError(t, err)
	require.Empty(t, layers, "nothing was unpacked")
	// It is here, for another namespace: that is no signature.
	f, err := get(s)
	require.NoError(t, err)
	f.Release()
	_, err = get(s, signer.PEM)
	require.Equal(t, drover.Forbidden, drover.CodeOf(err))

	r.Sign(t, signer, "x", digest)
	f, err = get(s, other.PEM, signer.PEM)
	require.NoError(t, err)
	require.Equal(t, "good", words(t, f))
	require.Equal(t, r.Host+"/x@"+digest.String(), f.Ref)
	f.Release()
	_, err = get(s, other.PEM)
	require.Equal(t, drover.Forbidden, drover.CodeOf(err))

	// What a daemon of the machine has by that name is nobody's word.
	local.set(testImage(t, archive(t, entry{name: "f", text: "local"})))
	fresh := NewStore(Options{Dir: t.TempDir(), Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler), Local: local})
	f, err = get(fresh, signer.PEM)
	require.NoError(t, err)
	require.Equal(t, "good", words(t, f))
	f.Release()
	r.Stop()
	f, err = get(s, signer.PEM)
	require.NoError(t, err, "it was looked at, and is here")
	f.Release()
	f, err = get(NewStore(s.opts), signer.PEM)
	require.NoError(t, err, "also after a restart")
	f.Release()
	_, err = get(NewStore(Options{Dir: t.TempDir(), Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler), Local: local}), signer.PEM)
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	require.Zero(t, local.saved.Load())

	_, err = s.Prepare(t.Context(), Request{Ref: "/tmp/x.tar", SignedBy: []string{signer.PEM}, Namespace: "web"})
	require.Equal(t, drover.Forbidden, drover.CodeOf(err))
	require.ErrorContains(t, err, "which nobody signed")
	f, err = s.Prepare(t.Context(), Request{Ref: Host, SignedBy: []string{signer.PEM}, Namespace: "web"})
	require.NoError(t, err)
	f.Release()
}

// TestARecordOfTheDaemonIsNoSignedImage: it has the name of a digest, and what it holds only the daemon knows.
func TestARecordOfTheDaemonIsNoSignedImage(t *testing.T) {
	t.Parallel()
	r, signer, local := registrytest.New(t, "", ""), registrytest.NewSigner(t, ""), &daemon{}
	_, digest := r.Push(t, "x:1", testImage(t, archive(t, entry{name: "f", text: "good"})))
	r.Sign(t, signer, "x", digest)
	s := NewStore(Options{Dir: t.TempDir(), Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler), Local: local})
	local.set(testImage(t, archive(t, entry{name: "f", text: "local"})))
	ref := r.Host + "/x@" + digest.String()
	r.Misbehave(func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusNotFound); return true })
	f, err := s.Prepare(t.Context(), Request{Ref: ref})
	require.NoError(t, err)
	require.Equal(t, "local", words(t, f))
	f.Release()
	r.Behave()
	f, err = s.Prepare(t.Context(), Request{Ref: ref, SignedBy: []string{signer.PEM}, Namespace: "web"})
	require.NoError(t, err)
	require.Equal(t, "good", words(t, f))
	f.Release()
}

// TestARegistryThatSwapsSignedImages answers with the signed image first, and with another one when it is to be pulled.
func TestARegistryThatSwapsSignedImages(t *testing.T) {
	t.Parallel()
	r, signer := registrytest.New(t, "", ""), registrytest.NewSigner(t, "")
	ref, good := r.Push(t, "x:1", testImage(t, archive(t, entry{name: "f", text: "good"})))
	_, evil := r.Push(t, "x:2", testImage(t, archive(t, entry{name: "f", text: "evil"})))
	r.Sign(t, signer, "x", good)
	var asked atomic.Int64
	r.Misbehave(func(_ http.ResponseWriter, q *http.Request) bool {
		manifest := strings.HasSuffix(q.URL.Path, "/manifests/1") || strings.HasSuffix(q.URL.Path, "/manifests/"+good.String())
		if q.Method == http.MethodGet && manifest && asked.Add(1) > 1 {
			q.URL.Path = "/v2/x/manifests/" + evil.String()
		}
		return false
	})
	s := newStore(t)
	_, err := s.Prepare(t.Context(), Request{Ref: ref, SignedBy: []string{signer.PEM}, Namespace: "web"})
	require.Error(t, err)
	r.Behave()
	f, err := s.Prepare(t.Context(), Request{Ref: ref, SignedBy: []string{signer.PEM}, Namespace: "web"})
	require.NoError(t, err)
	require.Equal(t, "good", words(t, f))
	f.Release()
}
