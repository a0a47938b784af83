package sandbox

import (
	"archive/tar"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// libraries lists what the dynamic linker loads for a program.
func libraries(t *testing.T, program string) []string {
	t.Helper()
	out, err := exec.Command("ldd", program).Output()
	require.NoError(t, err)
	var libs []string
	for f := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(f, "/") {
			libs = append(libs, f)
		}
	}
	return libs
}

// tarOf packs a directory.
func tarOf(t *testing.T, dir string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "layer.tar")
	f, err := os.Create(name)
	require.NoError(t, err)
	w := tar.NewWriter(f)
	require.NoError(t, w.AddFS(os.DirFS(dir)))
	require.NoError(t, w.Close())
	require.NoError(t, f.Close())
	return name
}
