package logs

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/logtimes"
)

// TestMarksAreBounded: a task that writes a byte each second for a year, and one that writes all the time, get no more marks than their
// logs pay for; marks go with their file.
func TestMarksAreBounded(t *testing.T) {
	t.Parallel()
	dir, fd := openDir(t)
	l, err := Open(fd, "t.stdout.", 2, 1<<20)
	require.NoError(t, err)
	now := time.UnixMilli(1_800_000_000_000)
	l.Now = func() time.Time { return now }
	size := func(n int) (marks, log int64) {
		a, err := os.Stat(filepath.Join(dir, logtimes.Name(l.name(n))))
		require.NoError(t, err)
		b, err := os.Stat(filepath.Join(dir, l.name(n)))
		require.NoError(t, err)
		return a.Size(), b.Size()
	}
	for range 20_000 {
		now = now.Add(time.Second)
		l.Write([]byte("\n"))
	}
	marks, log := size(0)
	require.Equal(t, int64(20_000), log)
	require.LessOrEqual(t, marks, logtimes.Limit(log))
	require.Equal(t, int64(1024+20_000/4096)*logtimes.Size, marks)
	piece := make([]byte, 32<<10)
	piece[len(piece)-1] = '\n'
	for range 100 { // all within one moment
		l.Write(piece)
	}
	require.NoFileExists(t, filepath.Join(dir, l.name(0)))
	require.NoFileExists(t, filepath.Join(dir, logtimes.Name(l.name(0))))
	marks, log = size(l.n - 1)
	require.LessOrEqual(t, marks/logtimes.Size, log/logtimes.Often+1)
	require.Greater(t, marks/logtimes.Size, log/logtimes.Often/2)
}

// TestPlantedMarksAreLeftAlone: what a task has put in the place of marks is not written to, and the log is written nevertheless.
func TestPlantedMarksAreLeftAlone(t *testing.T) {
	t.Parallel()
	dir, fd := openDir(t)
	target := filepath.Join(t.TempDir(), "target")
	require.NoError(t, os.WriteFile(target, []byte("kept"), 0o600))
	for i, plant := range []func(string) error{
		func(name string) error { return os.Symlink(target, name) },
		func(name string) error { return os.Link(target, name) },
		func(name string) error { return os.Mkdir(name, 0o700) },
	} {
		l, err := Open(fd, string(rune('a'+i))+".stdout.", 2, 100)
		require.NoError(t, err)
		l.Now = time.Now
		require.NoError(t, plant(filepath.Join(dir, logtimes.Name(l.name(0)))))
		l.Write([]byte("line\n"))
		l.Close()
		b, err := os.ReadFile(filepath.Join(dir, l.name(0)))
		require.NoError(t, err)
		require.Equal(t, "line\n", string(b))
	}
	b, err := os.ReadFile(target)
	require.NoError(t, err)
	require.Equal(t, "kept", string(b))
}
