package supervisor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// endedFolder is the folder of a supervisor that has ended.
func endedFolder(t *testing.T, name, log string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, process{1 << 22, "1234567890"}.write(dir))
	require.NoError(t, os.WriteFile(filepath.Join(dir, initLog), []byte(log), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "start.json"), []byte("{}"), 0o600))
	return dir
}

func names(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestAShelvedFolderServesTheNextSupervisor(t *testing.T) {
	t.Parallel()
	shelf := NewShelf(filepath.Join(t.TempDir(), "shelf"), quiet())
	first, next := endedFolder(t, "a", ""), filepath.Join(t.TempDir(), "b")
	shelf.Take(next) // nothing is there yet
	require.NoDirExists(t, next)
	require.NoError(t, shelf.Put(first))
	require.NoDirExists(t, first)
	shelf.Take(next)
	require.Equal(t, []string{initLog, pidFile}, names(t, next))
	require.NoError(t, process{7, "42"}.write(next)) // shorter than what was there
	require.Equal(t, process{7, "42"}, readProcess(next))
	require.Empty(t, names(t, shelf.dir))
}

func TestALogDoesNotPassToTheNextSupervisor(t *testing.T) {
	t.Parallel()
	shelf := NewShelf(filepath.Join(t.TempDir(), "shelf"), quiet())
	dir := endedFolder(t, "a", "panic\n")
	require.NoError(t, shelf.Put(dir))
	require.NoDirExists(t, dir)
	shelf.Take(dir)
	require.Equal(t, []string{pidFile}, names(t, dir))
}

func TestAFolderWithAnotherInItIsRemoved(t *testing.T) {
	t.Parallel()
	shelf := NewShelf(filepath.Join(t.TempDir(), "shelf"), quiet())
	dir := endedFolder(t, "a", "")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "boot"), 0o700))
	require.NoError(t, shelf.Put(dir))
	require.NoDirExists(t, dir)
	require.NoDirExists(t, shelf.dir)
	require.NoError(t, shelf.Put(dir), "again")
}

func TestAShelfHoldsAFewFoldersAndForgetsThoseOfAnEarlierAgent(t *testing.T) {
	t.Parallel()
	own := filepath.Join(t.TempDir(), "shelf")
	require.NoError(t, os.MkdirAll(filepath.Join(own, "1", "full"), 0o700))
	shelf := NewShelf(own, quiet())
	for range shelfRoom + 3 {
		require.NoError(t, shelf.Put(endedFolder(t, "a", "")))
	}
	require.Len(t, names(t, own), shelfRoom)
}

func TestATakenFolderDoesNotReplaceOneInUse(t *testing.T) {
	t.Parallel()
	shelf := NewShelf(filepath.Join(t.TempDir(), "shelf"), quiet())
	require.NoError(t, shelf.Put(endedFolder(t, "a", "")))
	used := endedFolder(t, "b", "said")
	shelf.Take(used)
	require.Contains(t, names(t, used), "start.json")
	require.Empty(t, names(t, shelf.dir))
}
