package clitest

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// Archived returns the files of an archive that a command wrote, by their paths in it. Nobody but their owner may read them.
func Archived(t *testing.T, path string) map[string]string {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	zip, err := gzip.NewReader(f)
	require.NoError(t, err)
	out, in := map[string]string{}, tar.NewReader(zip)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		require.EqualValues(t, 0o600, h.Mode, h.Name)
		text, err := io.ReadAll(in)
		require.NoError(t, err)
		out[h.Name] = string(text)
	}
}
