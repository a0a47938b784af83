package hook

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// A registered folder in whose place, or above which, somebody put a link is not mounted: it would be what the link leads to.
func TestARegisteredVolumeThatBecameALink(t *testing.T) {
	t.Parallel()
	const id = "11111111-2222-4333-8444-555555555555"
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	path := filepath.Join(dir, "above", "data")
	require.NoError(t, os.MkdirAll(path, 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "secret", "data"), 0o700))
	of := func(id, path string) *drover.HostVolumeInfo { return &drover.HostVolumeInfo{ID: id, Path: path} }
	require.NoError(t, moved(of(id, path)))
	require.NoError(t, os.Rename(filepath.Join(dir, "above"), filepath.Join(dir, "was")))
	require.NoError(t, os.Symlink("secret", filepath.Join(dir, "above")))
	require.ErrorContains(t, moved(of(id, path)), "leads elsewhere by now: register it anew")
	require.NoError(t, moved(of("", path)), "the configuration's are the operator's")

	require.NoError(t, os.Mkdir(filepath.Join(dir, "secret", id), 0o700))
	require.NoError(t, moved(of(id, filepath.Join(dir, "above", id))), "data_dir may be a link")
	require.NoError(t, os.Remove(filepath.Join(dir, "above")))
	require.ErrorContains(t, moved(of(id, path)), "leads elsewhere")
}
