package hook

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

// A task may put a link where its template is rendered anew, with a secret in it: to a file of another task, of the machine, or to nothing.
// What it leads to is neither written nor made; the link itself is replaced.
func TestNoSecretIsPrintedThroughALink(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "there"), []byte("own"), 0o600))
	for _, name := range []string{"there", "new"} {
		r := newRequest(t)
		at := filepath.Join(r.Dirs.Local, "x")
		require.NoError(t, os.Symlink(filepath.Join(outside, name), at))
		r.Task.Templates = []*drover.Template{{EmbeddedTmpl: "secret", DestPath: "local/x"}}
		require.NoError(t, rendersIn(t, clock.Wall{}).Prestart(context.Background(), r))
		info, err := os.Lstat(at)
		require.NoError(t, err)
		require.True(t, info.Mode().IsRegular())
		require.Equal(t, "secret", read(t, r.Dirs.Local, "x"))
	}
	require.Equal(t, "own", read(t, outside, "there"))
	require.NoFileExists(t, filepath.Join(outside, "new"))
}
