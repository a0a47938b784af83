package image

import (
	"bytes"
	"context"
	"io"
	"log"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

// daemon is a Local with one image.
type daemon struct {
	img   atomic.Pointer[v1.Image]
	away  atomic.Bool
	saved atomic.Int32
}

func (d *daemon) LocalImage(_ context.Context, ref string) (string, error) {
	img := d.img.Load()
	switch {
	case d.away.Load():
		return "", drover.Errorf(drover.Unavailable, "nobody answers")
	case img == nil || !strings.HasSuffix(ref, "/x:1") && !strings.Contains(ref, "/x@"):
		return "", drover.Errorf(drover.NotFound, "no such image")
	}
	id, err := (*img).ConfigName()
	return id.String(), err
}

func (d *daemon) SaveImage(_ context.Context, _ string) (io.ReadCloser, error) {
	d.saved.Add(1)
	tag, err := name.NewTag("x:1")
	var b bytes.Buffer
	if err == nil {
		err = tarball.Write(tag, *d.img.Load(), &b)
	}
	return io.NopCloser(&b), err
}

func (d *daemon) set(img v1.Image) { d.img.Store(&img) }

// TestImagesOfADaemon are taken where no registry has them, are noticed when they change, and outlive it.
func TestImagesOfADaemon(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	ref, local := strings.TrimPrefix(server.URL, "http://")+"/x:1", &daemon{}
	s := NewStore(Options{Dir: t.TempDir(), Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler), Local: local})
	get := func() string {
		r, err := s.Prepare(t.Context(), Request{Ref: ref})
		require.NoError(t, err)
		require.Equal(t, "/w", r.Config.WorkDir)
		text, err := os.ReadFile(filepath.Join(r.Lowers[1], "f"))
		require.NoError(t, err)
		r.Release()
		return string(text)
	}
	_, err := s.Prepare(t.Context(), Request{Ref: ref})
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
	require.ErrorContains(t, err, "the registry does not have it")
	require.ErrorContains(t, err, "no docker daemon of this machine has it either")

	one := testImage(t, archive(t, entry{name: "f", text: "one"}))
	local.set(one)
	require.Equal(t, []string{"one", "one"}, []string{get(), get()})
	require.Equal(t, int32(1), local.saved.Load(), "a second start asks only whether it is the same")
	local.set(testImage(t, archive(t, entry{name: "f", text: "two"})))
	require.Equal(t, "two", get())
	local.away.Store(true)
	require.Equal(t, "two", get())
	local.away.Store(false)

	pushed, err := name.ParseReference(ref)
	require.NoError(t, err)
	require.NoError(t, remote.Write(pushed, one))
	r, err := s.Prepare(t.Context(), Request{Ref: ref, Pull: true})
	require.NoError(t, err)
	digest, err := one.Digest()
	require.NoError(t, err)
	require.Equal(t, digest.String(), r.Digest, "a registry that has it goes first")
	r.Release()
	require.Equal(t, int32(2), local.saved.Load())
}
