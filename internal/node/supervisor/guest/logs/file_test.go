package logs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func openDir(t *testing.T) (string, int) {
	t.Helper()
	dir := t.TempDir()
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	return dir, fd
}

func TestLogRotatesAtLines(t *testing.T) {
	t.Parallel()
	dir, fd := openDir(t)
	l, err := Open(fd, "web.stdout.", 3, 100)
	require.NoError(t, err)
	var all strings.Builder
	for i := range 40 {
		line := strings.Repeat(string(rune('a'+i%26)), 29) + "\n"
		all.WriteString(line)
		l.Write([]byte(line[:7]))
		l.Write([]byte(line[7:]))
	}
	l.Close()
	var kept string
	names, err := filepath.Glob(filepath.Join(dir, "web.stdout.*"))
	require.NoError(t, err)
	require.Len(t, names, 3)
	for n := l.n - 2; n <= l.n; n++ {
		b, err := os.ReadFile(filepath.Join(dir, l.name(n)))
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(string(b), "\n"))
		kept += string(b)
	}
	require.True(t, strings.HasSuffix(all.String(), kept))
}

func TestLogContinuesAndLosesNothing(t *testing.T) {
	t.Parallel()
	dir, fd := openDir(t)
	for range 3 {
		l, err := Open(fd, "t.stderr.", 100, 1000)
		require.NoError(t, err)
		l.Write([]byte(strings.Repeat("x", 1700))) // a line without end
		l.Close()
	}
	total := 0
	names, _ := filepath.Glob(filepath.Join(dir, "t.stderr.*"))
	for _, n := range names {
		b, _ := os.ReadFile(n)
		total += len(b)
	}
	require.Equal(t, 5100, total)
}

func TestLogFollowsNoPlantedLink(t *testing.T) {
	t.Parallel()
	dir, fd := openDir(t)
	target := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.Symlink(target, filepath.Join(dir, "t.stdout.0")))
	_, err := Open(fd, "t.stdout.", 2, 10)
	require.Error(t, err)
	require.NoFileExists(t, target)
}

func TestLogMarksWhatAFullDiskDidNotTake(t *testing.T) {
	t.Parallel()
	dir, fd := openDir(t)
	l, err := Open(fd, "web.stdout.", 3, 1000)
	require.NoError(t, err)
	var told []string
	l.Tell = func(text string, _ bool) { told = append(told, text) }
	l.Write([]byte("one\n"))
	file := l.fd
	l.fd, err = unix.Open("/dev/full", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	l.Write([]byte("two\n"))
	l.Write([]byte("three\n"))
	require.Equal(t, []string{"output is not written to the log, and is lost: no space left on device"}, told)
	require.NoError(t, unix.Close(l.fd))
	l.fd = file
	l.Write([]byte("four\n"))
	require.Equal(t, "the log is written again; 10 bytes of output were lost: no space left on device", told[1])
	b, err := os.ReadFile(filepath.Join(dir, "web.stdout.0"))
	require.NoError(t, err)
	require.Equal(t, "one\n\n[drover: 10 bytes of output were lost: no space left on device]\nfour\n", string(b))

	l.Close() // as a rotation that found no room for a new file leaves it
	l.Write([]byte("five\n"))
	b, err = os.ReadFile(filepath.Join(dir, "web.stdout.0"))
	require.NoError(t, err)
	require.Contains(t, string(b), "four\nfive\n")
	l.Close()
}
