package image

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

const rootlessEnv = "DROVER_TEST_IMAGE_ROOTLESS"

// TestWithoutRoot is TestWithoutRootInside as a user without rights.
func TestWithoutRoot(t *testing.T) {
	t.Parallel()
	require.Zero(t, os.Geteuid(), "this test becomes another user: run it as root")
	drivertest.AsUser(t, "TestWithoutRootInside", rootlessEnv+"=yes", -1)
}

// TestWithoutRootInside: layers come and go whole, also folders that their owner may not write in, and what is half done
// of a bad one.
func TestWithoutRootInside(t *testing.T) {
	if os.Getenv(rootlessEnv) == "" {
		return // TestWithoutRoot runs it
	}
	locked := []entry{
		{name: "ro/", kind: tar.TypeDir, mode: 0o555},
		{name: "ro/in/", kind: tar.TypeDir, mode: 0o500},
		{name: "ro/in/x", text: "x", mode: 0o400},
		{name: "old/.wh.a"},
		{name: "no/", kind: tar.TypeDir, mode: 0o001},
		{name: "no/y", text: "y"},
	}
	s := newStore(t)
	file := filepath.Join(t.TempDir(), "i.tar")
	tag, err := name.NewTag("x:1")
	require.NoError(t, err)
	require.NoError(t, tarball.WriteToFile(file, tag, testImage(t, archive(t, locked...))))
	f, err := s.Prepare(t.Context(), Request{Ref: file})
	require.NoError(t, err)
	info, err := os.Stat(filepath.Join(f.Lowers[1], "ro/in"))
	require.NoError(t, err)
	require.Equal(t, os.ModeDir|0o500, info.Mode())
	f.Release()
	_, err = s.Collect(t.Context(), -time.Hour)
	require.NoError(t, err)
	require.NoDirExists(t, f.Lowers[1])
	dir := t.TempDir()
	bad := append(archive(t, locked...)[:7*512], bytes.Repeat([]byte("x"), 1024)...)
	require.ErrorContains(t, unpack(bytes.NewReader(bad), dir, unpackOptions{limits: s.limits()}), "archive")
	require.NoError(t, removeTree(dir))
}
