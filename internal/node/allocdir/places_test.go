package allocdir

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/id"
)

// Who moves client.alloc_dir keeps the folders of what runs: they stay until they are removed, and new ones are made at the new place.
func TestFoldersStayWhereTheyAre(t *testing.T) {
	t.Parallel()
	data, next, third := t.TempDir(), filepath.Join(t.TempDir(), "a b"), t.TempDir()
	file := filepath.Join(data, "alloc-dirs")
	open := func(path string) (Root, []string) {
		former, err := Places(file, data, path)
		require.NoError(t, err)
		root := NewRoot(data).At(path, former)
		require.NoError(t, root.Prepare())
		return root, former
	}
	built := func(root Root, alloc string) Dir {
		d, err := root.Dir(alloc)
		require.NoError(t, err)
		require.NoError(t, d.Build())
		return d
	}
	one, two := id.Random{}.New(), id.Random{}.New()
	root, former := open(filepath.Join(data, "alloc"))
	require.Empty(t, former)
	require.NoFileExists(t, file, "there is nothing to remember")
	first := built(root, one)

	root, former = open(next)
	require.Equal(t, []string{filepath.Join(data, "alloc")}, former)
	require.Equal(t, first.Path(), built(root, one).Path(), "it runs there")
	second := built(root, two)
	require.Equal(t, filepath.Join(next, two), second.Path())

	root, former = open(third)
	require.Equal(t, []string{next, filepath.Join(data, "alloc")}, former)
	require.Equal(t, first.Path(), built(root, one).Path())
	require.Equal(t, second.Path(), built(root, two).Path())
	require.NoError(t, first.Remove())
	require.NoError(t, second.Remove())
	require.Equal(t, filepath.Join(third, one), built(root, one).Path(), "it begins again")

	_, former = open(filepath.Join(data, "alloc"))
	require.Equal(t, []string{third}, former, "back again: only where there are some")
}

// No two agents have one folder: each would remove what it does not know.
func TestAFolderHasOneAgent(t *testing.T) {
	t.Parallel()
	shared := t.TempDir()
	mine := NewRoot(t.TempDir()).At(shared, nil)
	require.NoError(t, mine.Prepare())
	require.NoError(t, mine.Prepare())
	err := NewRoot(t.TempDir()).At(shared, nil).Prepare()
	require.ErrorContains(t, err, "client.alloc_dir: ")
	require.Equal(t, drover.Conflict, drover.CodeOf(err))
	require.NoError(t, os.Remove(filepath.Join(shared, owner)))
	require.NoError(t, NewRoot(t.TempDir()).At(shared, nil).Prepare())
}
