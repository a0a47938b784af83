package allocdir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
)

const allocID = "01234567-89ab-cdef-0123-456789abcdef"

func newDir(t *testing.T) Dir {
	root := NewRoot(t.TempDir())
	require.NoError(t, root.Prepare())
	d, err := root.Dir(allocID)
	require.NoError(t, err)
	require.NoError(t, d.Build())
	require.NoError(t, d.BuildTask("web"))
	return d
}

func TestLayout(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	require.NoError(t, d.Build())
	require.NoError(t, d.BuildTask("web"))
	require.True(t, d.TaskBuilt("web"))
	for path, mode := range map[string]os.FileMode{
		"alloc": 0o777, "alloc/logs": 0o777, "alloc/tmp": 0o777, "alloc/data": 0o777, "web": 0o777 | os.ModeSticky, "web/local": 0o777,
		"web/secrets": 0o777, "web/private": 0o700, "web/tmp": 0o777 | os.ModeSticky, ".": 0o700,
	} {
		info, err := os.Stat(filepath.Join(d.Path(), path))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode()&^os.ModeDir, path)
	}
	for _, bad := range []string{"../x", "alloc", ".hidden", "a/b", ""} {
		require.Error(t, d.BuildTask(bad), bad)
	}
	_, err := NewRoot("/x").Dir("../../etc")
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	require.NoError(t, d.Remove())
	require.False(t, d.Exists())
}

func TestReadStaysInside(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	outside := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(outside, []byte("no"), 0o600))
	local := d.Task("web").Local
	require.NoError(t, os.Symlink(outside, filepath.Join(local, "absolute")))
	require.NoError(t, os.Symlink("../../../../../../../../etc/passwd", filepath.Join(local, "relative")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(local, "fifo"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(local, "x.txt"), []byte("hello"), 0o600))
	for path, code := range map[string]drover.Code{
		"web/local/absolute": drover.Forbidden, "web/local/relative": drover.Forbidden, "../../../etc/passwd": drover.Forbidden,
		"web/secrets/token": drover.Forbidden, "web/private/x": drover.Forbidden, "nope": drover.NotFound, "web/local": drover.Invalid,
		"web/local/fifo": drover.Invalid, "web/local/x.txt/y": drover.Invalid,
	} {
		_, err := d.Read(path, 0, 0)
		require.Equal(t, code, drover.CodeOf(err), "%s: %v", path, err)
	}
	r, err := d.Read("/web/local/x.txt", 1, 3)
	require.NoError(t, err)
	data, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Equal(t, "ell", string(data))
	list, err := d.List("web/local")
	require.NoError(t, err)
	require.Len(t, list, 4)
	info, err := d.Stat("web/local/x.txt")
	require.NoError(t, err)
	require.Equal(t, "text/plain; charset=utf-8", info.ContentType)
	_, err = d.Read("web/local/x.txt", -1, 0)
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
}

func (d Dir) put(t *testing.T, n int, text string) {
	f, err := os.OpenFile(filepath.Join(d.Logs(), fmt.Sprintf("web.stdout.%d", n)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	require.NoError(t, err)
	_, err = f.WriteString(text)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// readAll reads until EOF.
func readAll(t *testing.T, r exchange.LogReader) (text string, last exchange.LogChunk) {
	var b strings.Builder
	for {
		c, err := r.Next(context.Background())
		if errors.Is(err, io.EOF) {
			require.NoError(t, r.Close())
			return b.String(), last
		}
		require.NoError(t, err)
		b.Write(c.Data)
		last = c
	}
}

func TestLogsOverRotatedFiles(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	_, err := d.Follow(exchange.LogRequest{Task: "web", Type: "stdout"}, clock.Wall{}, nil)
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
	for i, text := range []string{"abc", "", "def", "ghi"} {
		d.put(t, 8+i, text) // 8 9 10 11: by number, not by name
	}
	for _, test := range []struct {
		origin string
		offset int64
		want   string
	}{
		{"start", 0, "abcdefghi"},
		{"start", 4, "efghi"},
		{"start", 3, "defghi"},
		{"start", 99, ""},
		{"end", 0, ""},
		{"end", 4, "fghi"},
		{"end", 99, "abcdefghi"},
		{"", 8, "i"},
	} {
		r, err := d.Follow(exchange.LogRequest{Task: "web", Type: "stdout", Origin: test.origin, Offset: test.offset}, clock.Wall{}, nil)
		require.NoError(t, err)
		got, last := readAll(t, r)
		require.Equal(t, test.want, got, "%+v", test)
		if got != "" {
			require.Equal(t, "alloc/logs/web.stdout.11", last.File)
			require.Equal(t, int64(3), last.Offset)
		}
	}
	for _, bad := range []exchange.LogRequest{
		{Task: "web", Type: "x"},
		{Task: "../web", Type: "stdout"},
		{Task: "web", Type: "stdout", Origin: "middle"},
		{Task: "web", Type: "stdout", Offset: -1},
	} {
		_, err := d.Follow(bad, clock.Wall{}, nil)
		require.Equal(t, drover.Invalid, drover.CodeOf(err), "%+v", bad)
	}
}

func TestLogsFollow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDir(t)
		var ended atomic.Bool
		r, err := d.Follow(exchange.LogRequest{Task: "web", Type: "stdout", Follow: true}, clock.Wall{}, ended.Load)
		require.NoError(t, err)
		next := func() string {
			c, err := r.Next(context.Background())
			require.NoError(t, err)
			return string(c.Data)
		}
		time.AfterFunc(time.Second, func() { d.put(t, 0, "one") })
		require.Equal(t, "one", next())
		time.AfterFunc(time.Second, func() {
			d.put(t, 0, "two")
			d.put(t, 1, "three")
		})
		require.Equal(t, "two", next())
		require.Equal(t, "three", next())
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err = r.Next(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.AfterFunc(time.Second, func() {
			d.put(t, 1, "last")
			ended.Store(true)
		})
		require.Equal(t, "last", next())
		_, err = r.Next(context.Background())
		require.ErrorIs(t, err, io.EOF)
		require.NoError(t, r.Close())
	})
}

func TestFollowAFile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDir(t)
		path := filepath.Join(d.Task("web").Local, "x")
		require.NoError(t, os.WriteFile(path, []byte("0123456789"), 0o600))
		r, err := d.Follow(exchange.LogRequest{Path: "web/local/x", Follow: true, Origin: "end", Offset: 2}, clock.Wall{}, nil)
		require.NoError(t, err)
		c, err := r.Next(context.Background())
		require.NoError(t, err)
		require.Equal(t, "89", string(c.Data))
		require.NoError(t, os.Truncate(path, 1))
		c, err = r.Next(context.Background())
		require.NoError(t, err)
		require.Equal(t, "file truncated", c.Event)
		c, err = r.Next(context.Background())
		require.NoError(t, err)
		require.Equal(t, "0", string(c.Data))
		require.NoError(t, os.Remove(path))
		c, err = r.Next(context.Background())
		require.NoError(t, err)
		require.Equal(t, "file deleted", c.Event)
		_, err = r.Next(context.Background())
		require.ErrorIs(t, err, io.EOF)
		require.NoError(t, r.Close())
		_, err = d.Follow(exchange.LogRequest{Path: "../../x"}, clock.Wall{}, nil)
		require.Equal(t, drover.Forbidden, drover.CodeOf(err))
	})
}

func TestUsage(t *testing.T) {
	t.Parallel()
	root := NewRoot(t.TempDir())
	require.NoError(t, root.Prepare())
	d, err := root.Dir("5f2b1a3c-0000-4000-8000-0000000000aa")
	require.NoError(t, err)
	_, err = d.Usage()
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
	require.NoError(t, d.Build())
	require.NoError(t, d.BuildTask("t"))
	empty, err := d.Usage()
	require.NoError(t, err)
	require.Equal(t, uint64(10), empty.Files)
	big := filepath.Join(d.Path(), "t", "local", "big")
	require.NoError(t, os.WriteFile(big, make([]byte, 1<<20), 0o600))
	require.NoError(t, os.Link(big, filepath.Join(d.Path(), "alloc", "data", "again")))
	require.NoError(t, os.Symlink("/usr", filepath.Join(d.Path(), "t", "local", "out")))
	full, err := d.Usage()
	require.NoError(t, err)
	require.Equal(t, uint64(12), full.Files)
	require.InDelta(t, 1<<20, full.Bytes-empty.Bytes, 64<<10)
}
