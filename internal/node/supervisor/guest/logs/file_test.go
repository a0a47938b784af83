package logs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
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

// TestTheNewestFilesHoldTheEndOfTheOutput: however output is cut, what is kept is a tail of it, in files of about the size.
func TestTheNewestFilesHoldTheEndOfTheOutput(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp("", "logs")
		require.NoError(rt, err)
		defer os.RemoveAll(dir)
		fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		require.NoError(rt, err)
		defer unix.Close(fd)
		maxFiles, maxSize := rapid.IntRange(1, 4).Draw(rt, "files"), rapid.Int64Range(1, 300).Draw(rt, "size")
		l, err := Open(fd, "t.stdout.", maxFiles, maxSize)
		require.NoError(rt, err)
		var all strings.Builder
		for range rapid.IntRange(0, 60).Draw(rt, "writes") {
			p := rapid.StringMatching(`[a-z\n]{1,80}`).Draw(rt, "output")
			all.WriteString(p)
			l.Write([]byte(p))
			if rapid.IntRange(0, 9).Draw(rt, "restart") == 0 { // as a new supervisor goes on
				l.Close()
				l, err = Open(fd, "t.stdout.", maxFiles, maxSize)
				require.NoError(rt, err)
			}
		}
		l.Close()
		names, err := filepath.Glob(filepath.Join(dir, "t.stdout.*"))
		require.NoError(rt, err)
		require.LessOrEqual(rt, len(names), maxFiles)
		var kept string
		for n := l.n - len(names) + 1; n <= l.n; n++ {
			b, err := os.ReadFile(filepath.Join(dir, l.name(n)))
			require.NoError(rt, err, "the newest are there without a gap")
			require.LessOrEqual(rt, int64(len(b)), maxSize+lineGrace)
			kept += string(b)
		}
		require.True(rt, strings.HasSuffix(all.String(), kept))
		if l.n == 0 {
			require.Equal(rt, all.String(), kept, "nothing was rotated away")
		}
	})
}

func TestLogsOfOthersAreLeftAlone(t *testing.T) {
	t.Parallel()
	dir, fd := openDir(t)
	for _, name := range []string{"web.stdout.x", "web.stdout.-1", "web.stdout", "db.stdout.7", "web.stderr.9"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("kept"), 0o600))
	}
	l, err := Open(fd, "web.stdout.", 1, 10)
	require.NoError(t, err)
	for range 5 {
		l.Write([]byte("0123456789\n"))
	}
	l.Close()
	require.Positive(t, l.n)
	for _, name := range []string{"web.stdout.x", "web.stdout.-1", "web.stdout", "db.stdout.7", "web.stderr.9"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, "kept", string(b), name)
	}
}

// TestPlantedNamesAreSteppedOver: the task may write to the folder, and is not followed anywhere.
func TestPlantedNamesAreSteppedOver(t *testing.T) {
	t.Parallel()
	dir, fd := openDir(t)
	outside := filepath.Join(t.TempDir(), "outside")
	require.NoError(t, os.WriteFile(outside, []byte("kept"), 0o600))
	l, err := Open(fd, "t.stdout.", 10, 5)
	require.NoError(t, err)
	l.Write([]byte("first\n"))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "t.stdout.1")))
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "t.stdout.2"), 0o600))
	l.Write([]byte("second\n"))
	l.Close()
	require.Equal(t, 3, l.n)
	b, err := os.ReadFile(filepath.Join(dir, "t.stdout.3"))
	require.NoError(t, err)
	require.Equal(t, "second\n", string(b))
	require.NoError(t, os.Link(outside, filepath.Join(dir, "t.stdout.4")))
	_, err = Open(fd, "t.stdout.", 10, 5)
	require.Error(t, err, "a hard link to something else")
	b, err = os.ReadFile(outside)
	require.NoError(t, err)
	require.Equal(t, "kept", string(b))
}

func TestAFolderThatCannotTakeALog(t *testing.T) {
	t.Parallel()
	_, fd := openDir(t)
	l, err := Open(fd, "t.stdout.", 0, 0)
	require.NoError(t, err)
	require.Equal(t, []int64{defaultLogFiles, defaultLogSize}, []int64{int64(l.maxFiles), l.maxSize})
	l.Close()
	l.dir = -1 // as when it is unmounted
	var told []bool
	l.Tell = func(_ string, goesOn bool) { told = append(told, goesOn) }
	l.Write([]byte("a\n"))
	l.Write([]byte("b\n"))
	require.Equal(t, []bool{true}, told, "it is told once")
	l.dir = fd
	l.Write([]byte("c\n"))
	require.Equal(t, []bool{true, false}, told)
	require.Equal(t, int64(0), l.lost)
	l.Close()
}
