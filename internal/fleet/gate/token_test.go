package gate

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// A server makes its token once and keeps it where nobody else reads it.
func TestTheTokenIsMadeOnce(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	first, err := KeptToken(folder, "")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(first), 26)
	info, err := os.Stat(filepath.Join(folder, TokenFile))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	again, err := KeptToken(folder, "")
	require.NoError(t, err)
	require.Equal(t, first, again)
	for _, broken := range []string{"", "\n", "two\nlines"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, TokenFile), []byte(broken), 0o600))
		_, err = KeptToken(folder, "")
		require.ErrorContains(t, err, "remove it to have one made")
		require.Equal(t, drover.Invalid, drover.CodeOf(err))
	}
	_, err = KeptToken(filepath.Join(folder, "none"), "")
	require.Error(t, err)
}

func TestTheConfigurationMayNameAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("from a file\n"), 0o600))
	for _, c := range []struct{ token, file, want string }{{"", "", ""}, {"t", "", "t"}, {"t", file, "t"}, {"", file, "from a file"}} {
		got, err := ConfiguredToken(c.token, c.file, "k")
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	_, err := ConfiguredToken("", file+".not", "server.join_token_file")
	require.ErrorContains(t, err, "server.join_token_file: ")
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
}
