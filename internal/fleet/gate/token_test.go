package gate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// A server makes its token once and keeps it where nobody else reads it.
func TestTheTokenIsMadeOnce(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	first, err := keptToken(folder, "")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(first), 26)
	info, err := os.Stat(filepath.Join(folder, TokenFile))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	again, err := keptToken(folder, "")
	require.NoError(t, err)
	require.Equal(t, first, again)
	for _, broken := range []string{"", "\n", "two\nlines"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, TokenFile), []byte(broken), 0o600))
		_, err = keptToken(folder, "")
		require.ErrorContains(t, err, "remove it to have one made")
		require.Equal(t, drover.Invalid, drover.CodeOf(err))
	}
	_, err = keptToken(filepath.Join(folder, "none"), "")
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

// What the configuration says comes before what was made, and nothing is asked for where nodes are certified.
func TestTheTokenOfAServer(t *testing.T) {
	t.Parallel()
	c := TokenConfig{Folder: t.TempDir(), Certified: true}
	token, err := ServerToken(c)
	require.NoError(t, err)
	require.Empty(t, token)
	require.NoFileExists(t, filepath.Join(c.Folder, TokenFile))
	c.Certified = false
	made, err := ServerToken(c)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(made), 26)
	again, err := ServerToken(c)
	require.NoError(t, err)
	require.Equal(t, made, again)

	pin := "sha256:" + strings.Repeat("ab", 32)
	require.NoError(t, os.WriteFile(filepath.Join(c.Folder, TokenFile), []byte("@"+pin), 0o600))
	_, err = ServerToken(c)
	require.ErrorContains(t, err, "has no secret before the @; remove it to have one made")

	c.File = filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(c.File, []byte("from a file\n"), 0o600))
	for _, certified := range []bool{false, true} {
		c.Certified = certified
		token, err = ServerToken(c)
		require.NoError(t, err)
		require.Equal(t, "from a file", token)
	}
	c.File += ".not"
	_, err = ServerToken(c)
	require.ErrorContains(t, err, "server.join_token_file: ")
	c.Token = "configured"
	token, err = ServerToken(c)
	require.NoError(t, err)
	require.Equal(t, "configured", token)

	c.Token = "@" + pin // as of a template whose secret was empty: nobody would be asked for one
	_, err = ServerToken(c)
	require.EqualError(t, err, "server.join_token: has no secret before the @")
	c.Token = "secret@" + pin
	_, err = ServerToken(c)
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	require.ErrorContains(t, err, "it names the authority "+pin+", and this server's own is none")
	c.Pin = pin
	token, err = ServerToken(c)
	require.NoError(t, err)
	require.Equal(t, "secret", token)
}
