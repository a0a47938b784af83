package rotation

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func says(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

func TestTheNewestStay(t *testing.T) {
	t.Parallel()
	s := Series{Folder: filepath.Join(t.TempDir(), "new"), Prefix: "state-", Suffix: ".snap", Keep: 2}
	names, err := s.List()
	require.NoError(t, err)
	require.Empty(t, names)
	for _, middle := range []string{"1", "2", "3"} {
		path, err := s.Add(middle, says("text "+middle))
		require.NoError(t, err)
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	other := filepath.Join(s.Folder, "somebody's")
	require.NoError(t, os.WriteFile(other, nil, 0o600))
	torn := filepath.Join(s.Folder, ".state-4.snap-77"+unfinished) // of a process that was killed
	require.NoError(t, os.WriteFile(torn, nil, 0o600))

	_, err = s.Add("4", func(w io.Writer) error { return errors.Join(says("half")(w), errors.New("the disk is full")) })
	require.ErrorContains(t, err, "the disk is full")
	names, err = s.List()
	require.NoError(t, err)
	require.Equal(t, []string{"state-2.snap", "state-3.snap"}, names, "who cannot write a new one removes no old one")

	_, err = s.Add("5", says("text 5"))
	require.NoError(t, err)
	names, err = s.List()
	require.NoError(t, err)
	require.Equal(t, []string{"state-3.snap", "state-5.snap"}, names)
	require.FileExists(t, other)
	require.NoFileExists(t, torn)
	text, err := os.ReadFile(filepath.Join(s.Folder, "state-5.snap"))
	require.NoError(t, err)
	require.Equal(t, "text 5", string(text))
}

func TestAFileThatCannotBeWrittenLeavesTheFormerOne(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, Write(path, says("first")))
	require.Error(t, Write(path, func(io.Writer) error { return errors.New("no") }))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "first", string(text))
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.Error(t, Write(filepath.Join(path, "below"), says("x")), "a file is no folder")
}
