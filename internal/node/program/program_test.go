package program

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// shell is a call of a script.
func shell(script string) *Call {
	return &Call{Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"A=b"}, Dir: "/", Stdin: []byte("in"), Most: 1000}
}

func TestWhatAProgramSays(t *testing.T) {
	t.Parallel()
	out, said, err := shell(`cat; echo " $A $HOME $(pwd)"; echo wrong >&2; exit 3`).Run(t.Context())
	require.EqualError(t, err, "exit status 3")
	require.Equal(t, "in b  /\n", string(out))
	require.Equal(t, "wrong\n", string(said))
}

func TestAProgramThatPrintsTooMuchIsEnded(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"yes", "yes >&2", "head -c 1001 /dev/zero"} {
		out, _, err := shell(script).Run(t.Context())
		require.ErrorIs(t, err, ErrTooMuch)
		require.LessOrEqual(t, len(out), 1000)
	}
	out, _, err := shell("head -c 1000 /dev/zero").Run(t.Context())
	require.NoError(t, err)
	require.Len(t, out, 1000)
}

// A child in the program's group goes with it; one that left it must not keep us, though it holds the output open.
func TestAProgramThatHangsIsEndedWithItsChildren(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"sleep 1000 & wait", "setsid sleep 20 & sleep 1000"} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, _, err := shell(script).Run(ctx)
		require.Error(t, err)
		require.Error(t, ctx.Err())
		cancel()
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	require.Equal(t, "no [31m room; é ?", Plain("no\n\x1b[31m\troom; é \xff\n", 100))
	require.Equal(t, strings.Repeat("é", 10)+"…", Plain(strings.Repeat("é", 11), 10))
}

func TestWhoIsTrusted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link, open := filepath.Join(dir, "safe", "file"), filepath.Join(dir, "safe", "link"), filepath.Join(dir, "open")
	require.NoError(t, os.Mkdir(filepath.Dir(file), 0o755))
	require.NoError(t, os.Mkdir(open, 0o755))
	require.NoError(t, os.WriteFile(file, nil, 0o755))
	require.NoError(t, os.Symlink("file", link))
	require.NoError(t, os.Symlink(file, filepath.Join(open, "link")))
	real, err := Trusted(link)
	require.NoError(t, err)
	require.Equal(t, file, real)

	require.NoError(t, os.Chmod(open, 0o777|os.ModeSticky))
	_, err = Trusted(filepath.Join(open, "link"))
	require.Equal(t, drover.Forbidden, drover.CodeOf(err), "whoever names it decides, too")
	require.NoError(t, os.Chmod(file, 0o775))
	_, err = Trusted(file)
	require.ErrorContains(t, err, file+" can be written by other users: chmod go-w")
	require.NoError(t, os.Chmod(file, 0o755))
	require.NoError(t, os.Chmod(filepath.Dir(file), 0o777))
	_, err = Trusted(file)
	require.ErrorContains(t, err, "safe can be written by other users")
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chmod(filepath.Dir(file), 0o755))
		require.NoError(t, os.Chown(filepath.Dir(file), 1000, 1000))
		_, err = Trusted(file)
		require.ErrorContains(t, err, "safe belongs to user 1000: it must be root's or the agent's")
	}
	_, err = Trusted(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
