package allocdir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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

// search returns what a search of a log finds, without where it got to.
func (d Dir) search(t require.TestingT, q exchange.LogRequest, end func() bool) (found []exchange.LogChunk) {
	q.Task, q.Type = "web", "stdout"
	r, err := d.Follow(q, clock.Wall{}, end)
	require.NoError(t, err)
	defer r.Close()
	first, err := r.Next(context.Background())
	require.NoError(t, err)
	require.True(t, first.Found, "it says that it searches")
	for {
		c, err := r.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return found
		}
		require.NoError(t, err)
		if c.Found {
			found = append(found, c)
		}
	}
}

// writeLogs makes the rotated files of a log anew.
func (d Dir) writeLogs(t require.TestingT, files ...string) {
	require.NoError(t, os.RemoveAll(d.Logs()))
	require.NoError(t, os.Mkdir(d.Logs(), 0o755))
	for i, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(d.Logs(), fmt.Sprintf("web.stdout.%d", i)), []byte(content), 0o600))
	}
}

// TestALogIsSearchedAsABookWouldBe: however a log is cut into files, each line that has the text is found once, where it stands, and no
// other.
func TestALogIsSearchedAsABookWouldBe(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	rapid.Check(t, func(rt *rapid.T) {
		word := rapid.SampledFrom([]string{"a", "A", "ab", "ä", "Äß", "σς", "\xff", "zz", "b "})
		between := rapid.SampledFrom([]string{"\n", "", " ", "\n\n"}).Draw(rt, "between")
		text := strings.Join(rapid.SliceOfN(word, 0, 60).Draw(rt, "words"), between)
		looked := rapid.SampledFrom([]string{"a", "AB", "ä", "Ä", "ẞ", "Σσ", "b a", "ab\t"}).Draw(rt, "looked for")
		cuts := rapid.SliceOfNDistinct(rapid.IntRange(0, len(text)), 0, 3, rapid.ID[int]).Draw(rt, "cuts")
		files, begins, last := []string{}, []int{}, 0
		for at := 0; at <= len(text); at++ {
			for _, cut := range cuts {
				if cut == at && at > last {
					files, begins, last = append(files, text[last:at]), append(begins, last), at
				}
			}
		}
		files, begins = append(files, text[last:]), append(begins, last)
		d.writeLogs(rt, files...)

		var want []string
		for _, line := range strings.Split(text, "\n") {
			if strings.Contains(strings.ToUpper(folded(line)), strings.ToUpper(folded(looked))) {
				want = append(want, line)
			}
		}
		var got []string
		for _, c := range d.search(rt, exchange.LogRequest{Search: looked}, nil) {
			got = append(got, string(c.Data))
			var file int
			_, err := fmt.Sscanf(c.File, "alloc/logs/web.stdout.%d", &file)
			require.NoError(rt, err)
			from := begins[file] + int(c.Offset) - len(c.Data)
			require.Equal(rt, string(c.Data), text[from:from+len(c.Data)], "where it stands")
			require.True(rt, from == 0 || text[from-1] == '\n')
		}
		require.Equal(rt, want, got)
	})
}

// folded is a slow way to have letters that differ in their case only alike.
func folded(s string) string {
	return strings.NewReplacer("ς", "σ", "Σ", "σ", "ẞ", "ß", "Ä", "ä").Replace(s)
}

// A line that is longer than what is read at once is found once, by what is around the text; so is a text that lies across two pieces.
func TestALongLineIsSearchedInPieces(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	for _, at := range []int{0, 100, 5000, longestLine - 3, longestLine, 3*longestLine - 2, 4*longestLine - 6} {
		line := bytes.Repeat([]byte("-"), 4*longestLine)
		copy(line[at:], "needle")
		if at+6+longestLine < len(line) {
			copy(line[len(line)-6:], "needle") // a line is told once
		}
		d.writeLogs(t, "before\n"+string(line)+"\nneedle")
		found := d.search(t, exchange.LogRequest{Search: "NEEDLE"}, nil)
		require.Len(t, found, 2, at)
		c := found[0]
		require.LessOrEqual(t, len(c.Data), exchange.LongestMatch)
		begins := int(c.Offset) - len(c.Data) - len("before\n")
		require.Equal(t, string(line[begins:begins+len(c.Data)]), string(c.Data))
		require.LessOrEqual(t, begins, at)
		require.GreaterOrEqual(t, begins+len(c.Data), at+6)
		require.Equal(t, "needle", string(found[1].Data), "a line without an end")
	}
}

// A search says how far it got while it finds nothing, ends with its reader, and refuses what it would not find.
func TestASearchSaysHowFarItGot(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	d.writeLogs(t, strings.Repeat("nothing here\n", 3*searchedEvery/13))
	open := func(q exchange.LogRequest) (exchange.LogReader, error) {
		q.Task, q.Type = "web", "stdout"
		return d.Follow(q, clock.Wall{}, nil)
	}
	r, err := open(exchange.LogRequest{Search: "x"})
	require.NoError(t, err)
	defer r.Close()
	ctx, stop := context.WithCancel(t.Context())
	_, err = r.Next(ctx)
	require.NoError(t, err)
	c, err := r.Next(ctx)
	require.NoError(t, err)
	require.Empty(t, c.Data)
	require.Equal(t, "alloc/logs/web.stdout.0", c.File)
	require.InDelta(t, searchedEvery, c.Offset, chunkSize)
	stop()
	_, err = r.Next(ctx)
	require.ErrorIs(t, err, context.Canceled)

	_, err = open(exchange.LogRequest{Search: strings.Repeat("x", exchange.LongestSearch+1)})
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	_, err = d.Follow(exchange.LogRequest{Path: "alloc/logs/web.stdout.0", Search: "x"}, clock.Wall{}, nil)
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
}

// What is found has the time at which it was written, as the log's marks tell, also of what is written while it is followed.
func TestWhatIsFoundHasItsTime(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	fd, err := unix.Open(d.Logs(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	now := time.UnixMilli(1_800_000_000_000)
	l, err := logs.Open(fd, "web.stdout.", 4, 100)
	require.NoError(t, err)
	l.Now = func() time.Time { return now }
	var times []int64
	write := func() {
		now = now.Add(2 * time.Second)
		l.Write([]byte("one line of a log\n"))
		times = append(times, now.UnixMilli())
	}
	for range 9 {
		write()
	}
	asked := 0
	found := d.search(t, exchange.LogRequest{Search: "LINE", Follow: true}, func() bool {
		if asked++; asked == 2 { // it is at the end of a file
			write()
		}
		return asked > 40
	})
	l.Close()
	var told []int64
	for _, c := range found {
		told = append(told, c.At)
	}
	require.Equal(t, times, told)
	require.Zero(t, (&searcher{from: &follower{dir: d}}).when(place{file: "alloc/logs/none"}), "nothing says when")
}

// A log of which each line is found costs its marks once, and not for each line: a task's author chooses how many there are of both.
func TestTimesAreReadOnce(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	const lines, each = 2_000, 8 // lines, and bytes of one
	d.writeLogs(t, strings.Repeat("a line.\n", lines))
	var marks []byte
	for i := range lines / 2 {
		marks = logtimes.Append(marks, logtimes.Mark{At: time.UnixMilli(int64(i + 1)), Offset: int64(i * each)})
	}
	file := filepath.Join(d.Logs(), logtimes.Name("web.stdout.0"))
	require.NoError(t, os.WriteFile(file, marks, 0o600))
	f := &follower{dir: d, request: exchange.LogRequest{Task: "web", Type: "stdout"}}
	s := &searcher{from: f}
	none := place{file: "alloc/logs/web.stdout.0", offset: 0}
	require.NoError(t, os.Rename(file, file+".away"))
	require.Zero(t, s.when(none))
	require.NoError(t, os.Rename(file+".away", file))
	none.offset = each
	require.Zero(t, s.when(none), "a file without marks is not asked for each line")
	s = &searcher{from: f}
	at := func(offset int64) int64 { return s.when(place{file: "alloc/logs/web.stdout.0", offset: offset}) }
	require.EqualValues(t, 1, at(0))
	require.NoError(t, os.Remove(file)) // so that it is seen when it is read again
	for i := range int64(lines) {
		require.EqualValues(t, min(i+1, lines/2), at(i*each))
	}
	require.Zero(t, at(0), "who goes back reads them again")
	for _, name := range []string{file, filepath.Join(d.Logs(), "web.stdout.0")} {
		require.NoError(t, os.WriteFile(name, nil, 0o600))
	}
	require.Zero(t, at(100_000))
	require.NoError(t, os.WriteFile(file, marks, 0o600))
	require.Zero(t, at(100_001), "a file that is shorter than what was read of it is not asked for each line")
}
