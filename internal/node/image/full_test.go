package image

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
)

// TestDiskFullWhileUnpacking: the reason is told, nothing half done stays, and it works once there is space.
func TestDiskFullWhileUnpacking(t *testing.T) {
	t.Parallel()
	require.Zero(t, os.Geteuid(), "this test mounts a small file system: run it as root")
	host, _ := serve(t, "")
	img := testImage(t, archive(t, entry{name: "small", text: "x"}), archive(t, entry{name: "big", text: strings.Repeat("x", 3<<20)}))
	ref, err := name.ParseReference(host + "/big:1")
	require.NoError(t, err)
	require.NoError(t, remote.Write(ref, img))
	dir := t.TempDir()
	require.NoError(t, syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"))
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, 0)) })
	s := NewStore(Options{Dir: dir, Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler)})
	_, err = s.Prepare(t.Context(), Request{Ref: ref.String()})
	require.ErrorContains(t, err, "no space left on device")
	left, err := filepath.Glob(filepath.Join(dir, "layers", ".new-*"))
	require.NoError(t, err)
	require.Empty(t, left, "half a layer")
	require.NoError(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=20m"))
	f, err := s.Prepare(t.Context(), Request{Ref: ref.String()})
	require.NoError(t, err)
	data, err := os.ReadFile(filepath.Join(f.Lowers[1], "big"))
	require.NoError(t, err)
	require.Len(t, data, 3<<20)
}
