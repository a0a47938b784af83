package allocdir

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/logtimes"
	"github.com/drover-project/drover/internal/node/supervisor/guest/logs"
)

// since reads what a log has since a time.
func (d Dir) since(t require.TestingT, at time.Time) (text string, err error) {
	r, err := d.Follow(exchange.LogRequest{Task: "web", Type: "stdout", Since: at.UnixMilli()}, clock.Wall{}, nil)
	if err != nil {
		return "", err
	}
	defer r.Close()
	var b strings.Builder
	for {
		c, err := r.Next(nil) //nolint:staticcheck // it does not wait
		if err != nil {
			return b.String(), nil
		}
		b.Write(c.Data)
	}
}

// TestALogSinceATime: a task writes whatever it likes when it likes, over rotated files and restarts of its supervisor. What is
// read since a time is all that was written since and is still there, and at most a second's more.
func TestALogSinceATime(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	rapid.Check(t, func(rt *rapid.T) {
		require.NoError(rt, os.RemoveAll(d.Logs()))
		require.NoError(rt, os.Mkdir(d.Logs(), 0o755))
		fd, err := unix.Open(d.Logs(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		require.NoError(rt, err)
		defer unix.Close(fd)
		now := time.UnixMilli(1_800_000_000_000)
		open := func() *logs.File {
			l, err := logs.Open(fd, "web.stdout.", rapid.IntRange(1, 4).Draw(rt, "files"), rapid.Int64Range(20, 2000).Draw(rt, "size"))
			require.NoError(rt, err)
			l.Now = func() time.Time { return now }
			return l
		}
		l := open()
		var times []time.Time // of line i
		for range rapid.IntRange(1, 80).Draw(rt, "lines") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 30, 400, 999, 1000, 5000, 3_600_000}).Draw(rt, "pause")) * time.Millisecond)
			l.Write(fmt.Appendf(nil, "%d\n", len(times)))
			times = append(times, now)
			d.touchNewest(rt, now)
			if rapid.IntRange(0, 19).Draw(rt, "restart") == 0 {
				l.Close()
				l = open()
			}
		}
		l.Close()
		all, err := d.since(rt, time.UnixMilli(1))
		require.NoError(rt, err)
		asked := times[rapid.IntRange(0, len(times)-1).Draw(rt, "about")].
			Add(time.Duration(rapid.IntRange(-1500, 1500).Draw(rt, "off")) * time.Millisecond)
		got, err := d.since(rt, asked)
		require.NoError(rt, err)
		require.True(rt, strings.HasSuffix(all, got), "it is an end of the log")
		require.True(rt, got == "" || len(got) == len(all) || all[len(all)-len(got)-1] == '\n', "of whole lines")
		for i, at := range times {
			line := fmt.Sprintf("\n%d\n", i)
			if !at.Before(asked) && strings.Contains("\n"+all, line) {
				require.Contains(rt, "\n"+got, line, "written at %v, since %v", at, asked)
			}
			if at.Before(asked.Add(-logtimes.Every - logtimes.Grain)) {
				require.NotContains(rt, "\n"+got, line, "written at %v, since %v", at, asked)
			}
		}
	})
}

// touchNewest gives the file that is written to the time of the test's clock.
func (d Dir) touchNewest(t require.TestingT, now time.Time) {
	f := &follower{dir: d, request: exchange.LogRequest{Task: "web", Type: "stdout"}}
	numbers := f.numbers()
	require.NoError(t, os.Chtimes(filepath.Join(d.Path(), f.rotated(numbers[len(numbers)-1])), now, now))
}

// TestFalseMarksLeadNowhereElse: a task may write to the folder of its logs. Whatever it puts there, the position is in its own log.
func TestFalseMarksLeadNowhereElse(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	d.put(t, 0, "one\ntwo\n")
	marks := filepath.Join(d.Logs(), logtimes.Name("web.stdout.0"))
	later := time.Now().Add(-time.Minute)
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("0123456789abcdef"), 0o600))
	for name, plant := range map[string]func(){
		"nothing": func() {},
		"noise":   func() { require.NoError(t, os.WriteFile(marks, []byte(strings.Repeat("\xff", 999)), 0o600)) },
		"beyond the end": func() {
			require.NoError(t, os.WriteFile(marks, logtimes.Append(nil, logtimes.Mark{At: later, Offset: 1 << 30}), 0o600))
		},
		"backwards": func() {
			b := logtimes.Append(logtimes.Append(nil, logtimes.Mark{At: later.Add(-time.Hour), Offset: 4}),
				logtimes.Mark{At: later.Add(-time.Minute), Offset: 0})
			require.NoError(t, os.WriteFile(marks, b, 0o600))
		},
		"a torn mark": func() { require.NoError(t, os.WriteFile(marks, binary.BigEndian.AppendUint32(nil, 1), 0o600)) },
		"a link":      func() { require.NoError(t, os.Symlink(secret, marks)) },
		"a pipe":      func() { require.NoError(t, unix.Mkfifo(marks, 0o600)) },
		"a folder":    func() { require.NoError(t, os.Mkdir(marks, 0o700)) },
		"very many":   func() { require.NoError(t, os.WriteFile(marks, make([]byte, 1<<20), 0o600)) },
	} {
		_ = os.Remove(marks)
		plant()
		got, err := d.since(t, later)
		require.NoError(t, err, name)
		require.True(t, strings.HasSuffix("one\ntwo\n", got) && got != "", "%s: %q", name, got)
	}
}

// TestALogFromAFile: who has read up to an offset of a rotated file goes on there, or with the next that is still there.
func TestALogFromAFile(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	d.put(t, 3, "abc")
	d.put(t, 5, "def")
	for _, test := range []struct {
		file   string
		offset int64
		want   string
	}{
		{"alloc/logs/web.stdout.3", 1, "bcdef"},
		{"alloc/logs/web.stdout.3", 99, "def"},
		{"alloc/logs/web.stdout.4", 2, "def"},
		{"alloc/logs/web.stdout.5", 2, "f"},
		{"alloc/logs/web.stdout.0", 2, "abcdef"},
		{"alloc/logs/web.stdout.9", 2, ""},
	} {
		r, err := d.Follow(exchange.LogRequest{Task: "web", Type: "stdout", File: test.file, Offset: test.offset}, clock.Wall{}, nil)
		require.NoError(t, err)
		got, _ := readAll(t, r)
		require.Equal(t, test.want, got, "%+v", test)
	}
	for _, bad := range []exchange.LogRequest{
		{Task: "web", Type: "stdout", File: "alloc/logs/web.stderr.3"},
		{Task: "web", Type: "stdout", File: "alloc/logs/web.stdout.x"},
		{Task: "web", Type: "stdout", File: "alloc/logs/web.stdout.-1"},
		{Task: "web", Type: "stdout", File: "alloc/logs/web.stdout.3", Origin: "end"},
		{Task: "web", Type: "stdout", Since: 1, Offset: 1},
		{Task: "web", Type: "stdout", Since: 1, Origin: "end"},
		{Path: "alloc/logs/web.stdout.3", Since: 1},
		{Path: "alloc/logs/web.stdout.3", File: "alloc/logs/web.stdout.3"},
	} {
		_, err := d.Follow(bad, clock.Wall{}, nil)
		require.Equal(t, drover.Invalid, drover.CodeOf(err), "%+v", bad)
	}
}
