package programtest

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/forked"
)

// Write makes a program that can be executed at once, whatever other tests fork meanwhile.
func Write(t testing.TB, path string, data []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	require.NoError(t, err)
	_, err = f.Write(data)
	require.NoError(t, err)
	require.NoError(t, forked.Close(f))
}
