package agent

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/id"
)

// An agent whose state_dir was changed is not another node: it would end what the first one runs.
func TestAStateThatIsElsewhereIsNotForgotten(t *testing.T) {
	t.Parallel()
	data, next := t.TempDir(), filepath.Join(t.TempDir(), "state")
	first, err := ReadIdentity(Config{DataDir: data}, id.Random{})
	require.NoError(t, err)
	_, err = ReadIdentity(Config{DataDir: data, StateDir: next}, id.Random{})
	require.ErrorContains(t, err, "client.state_dir: there is no state in "+next)
	require.ErrorContains(t, err, "cp -a "+filepath.Join(data, "client"))
	require.Equal(t, drover.Invalid, drover.CodeOf(err))

	require.NoError(t, os.CopyFS(next, os.DirFS(filepath.Join(data, "client"))))
	moved, err := ReadIdentity(Config{DataDir: data, StateDir: next}, id.Random{})
	require.NoError(t, err)
	require.Equal(t, first, moved)

	require.NoError(t, os.RemoveAll(filepath.Join(data, "client")))
	_, err = ReadIdentity(Config{DataDir: data}, id.Random{})
	require.ErrorContains(t, err, "that of this node is in "+next, "nor is it when the key is taken out again")
	again, err := ReadIdentity(Config{DataDir: data, StateDir: next}, id.Random{})
	require.NoError(t, err)
	require.Equal(t, first, again)

	other := t.TempDir() // as Nomad's agent has left it, from whom the configuration is
	_, err = ReadIdentity(Config{DataDir: other}, id.Random{})
	require.NoError(t, err)
	_, err = ReadIdentity(Config{DataDir: data, StateDir: filepath.Join(other, "client")}, id.Random{})
	require.ErrorContains(t, err, "is another node's, and that of this node is in "+next)

	fresh, err := ReadIdentity(Config{DataDir: t.TempDir(), StateDir: filepath.Join(t.TempDir(), "s")}, id.Random{})
	require.NoError(t, err)
	require.NotEqual(t, first.ID, fresh.ID)
}
