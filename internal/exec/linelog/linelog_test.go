package linelog

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func read(t *testing.T, l *Log) (lines []string) {
	t.Helper()
	require.NoError(t, l.Read(func(line []byte) { lines = append(lines, string(line)) }))
	return lines
}

func TestLinesOutliveTheLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lines")
	l, err := Open(path)
	require.NoError(t, err)
	require.NoError(t, l.Append([]byte("a\n")))
	require.NoError(t, l.Append([]byte("b\n")))
	require.NoError(t, l.Close())

	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = f.WriteString("torn")
	require.NoError(t, err)
	require.NoError(t, f.Close())

	l, err = Open(path)
	require.NoError(t, err)
	require.Equal(t, []string{"a\n", "b\n"}, read(t, l))
	require.NoError(t, l.Append([]byte("c\n")), "behind what is whole")
	require.Equal(t, []string{"a\n", "b\n", "c\n"}, read(t, l))
	require.NoError(t, l.Replace([]byte("c\n")))
	require.NoError(t, l.Append([]byte("d\n")))
	require.Equal(t, int64(4), l.Size())
	require.Equal(t, []string{"c\n", "d\n"}, read(t, l))
	require.NoError(t, l.Replace(nil))
	require.Empty(t, read(t, l))
	require.NoError(t, l.Close())
}

func TestNoFileKeepsNothing(t *testing.T) {
	t.Parallel()
	l, err := Open("")
	require.NoError(t, err)
	require.False(t, l.Kept())
	require.NoError(t, l.Append([]byte("a\n")))
	require.NoError(t, l.Replace([]byte("a\n")))
	require.Empty(t, read(t, l))
	require.NoError(t, l.Close())
	_, err = Open(filepath.Join(t.TempDir(), "missing", "x"))
	require.Error(t, err)
}
