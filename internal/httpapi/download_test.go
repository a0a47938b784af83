package httpapi

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// oneFile is the files of a runner that has one. next, if set, changes the file before the next opening.
type oneFile struct {
	execution.Files
	mu     sync.Mutex
	kind   string
	data   []byte
	size   int64 // what the node says of it
	at     time.Time
	next   func(*oneFile)
	fails  error // after the data
	opened []execution.FileRequest
	closed int
}

func (f *oneFile) Read(_ context.Context, r execution.FileRequest) (execution.FileInfo, io.ReadCloser, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next != nil && len(f.opened) > 0 {
		f.next(f)
	}
	if f.kind == "" {
		return execution.FileInfo{}, nil, drover.Errorf(drover.NotFound, "no such file")
	}
	f.opened = append(f.opened, r)
	info := execution.FileInfo{Type: f.kind, Size: f.size, ModTime: f.at}
	data := f.data[min(r.Offset, int64(len(f.data))):]
	if r.Length > 0 {
		data = data[:min(r.Length, int64(len(data)))]
	}
	var end io.Reader = strings.NewReader("")
	if f.fails != nil {
		end = errorReader{f.fails}
	}
	return info, closer{io.MultiReader(bytes.NewReader(data), end), f}, nil
}

type errorReader struct{ error }

func (e errorReader) Read([]byte) (int, error) { return 0, e.error }

type closer struct {
	io.Reader
	f *oneFile
}

func (c closer) Close() error {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	c.f.closed++
	return nil
}

var written = time.Date(2026, 11, 23, 5, 0, 0, 123, time.UTC)

func newFile(data string) *oneFile {
	return &oneFile{kind: "-", data: []byte(data), size: int64(len(data)), at: written}
}

// tag is the file's, of a size.
func tag(size int) string { return fmt.Sprintf(`"%x-%x"`, written.UnixNano(), size) }

// download asks a real server for the file, and renders what a client sees of the answer.
func (f *oneFile) download(t *testing.T, method string, headers ...string) string {
	t.Helper()
	handle := func(w http.ResponseWriter, r *http.Request) error {
		return Download(w, r, f, execution.FileRequest{Path: "file"}, func(execution.FileInfo) {
			w.Header().Set("Content-Disposition", "attachment")
		})
	}
	srv := httptest.NewServer(Handler(testConfig(), testFace{{Pattern: "GET /file", Stream: true, Handle: handle}}))
	defer srv.Close()
	r, err := http.NewRequestWithContext(t.Context(), method, srv.URL+"/file", nil)
	require.NoError(t, err)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(r)
	if err != nil {
		return "cut before its head"
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	end := ""
	if err != nil {
		end = " cut"
	}
	h := res.Header
	line := fmt.Sprintf("%d %s%s", res.StatusCode, shown(t, h, body), end)
	if res.Header.Get("Content-Encoding") == "" && err == nil {
		line += fmt.Sprintf(", length %d", res.ContentLength)
	}
	for _, name := range []string{"Content-Range", "Content-Encoding", "Accept-Ranges", "Content-Disposition"} {
		if v := h.Get(name); v != "" {
			line += ", " + v
		}
	}
	if h.Get("Last-Modified") == written.Format(http.TimeFormat) {
		line += ", dated"
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if v := h.Get("Etag"); v != "" {
		line += ", " + strings.Replace(v, strings.Trim(tag(int(f.size)), `"`), "tag", 1)
	}
	return line + fmt.Sprintf(" (%d opened)", len(f.opened))
}

// shown renders a body, decoded and cut where it is long.
func shown(t *testing.T, h http.Header, body []byte) string {
	t.Helper()
	if h.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(body))
		require.NoError(t, err)
		if body, err = io.ReadAll(z); err != nil {
			return "half a gzip stream"
		}
	}
	if len(body) > 70 {
		return fmt.Sprintf("%.10q… %d bytes", body, len(body))
	}
	return fmt.Sprintf("%q", body)
}

// download is a request of TestDownloads.
type download struct {
	name, method, data string
	file               *oneFile // nil: a new one with data, or with ten bytes
	headers            []string
}

const ten = "0123456789"

// partsAndConditions are asked of a file of ten bytes.
func partsAndConditions() []download {
	same := tag(len(ten))
	day := func(n int) string { return written.AddDate(0, 0, n).Format(http.TimeFormat) }
	return []download{
		{name: "whole"},
		{name: "head", method: "HEAD"},
		{name: "head of a range", method: "HEAD", headers: []string{"Range", "bytes=2-4"}},
		{name: "range", headers: []string{"Range", "bytes=2-4"}},
		{name: "to the end", headers: []string{"Range", "bytes=7-"}},
		{name: "beyond the end", headers: []string{"Range", "bytes=7-100"}},
		{name: "far beyond the end", headers: []string{"Range", "bytes=7-99999999999999999999"}},
		{name: "all as a range", headers: []string{"Range", "bytes=0-"}},
		{name: "the last", headers: []string{"Range", "bytes=-4"}},
		{name: "more than all of the last", headers: []string{"Range", "bytes=-400"}},
		{name: "none of the last", headers: []string{"Range", "bytes=-0"}},
		{name: "behind the end", headers: []string{"Range", "bytes=10-"}},
		{name: "far behind the end", headers: []string{"Range", "bytes=99999999999999999999-"}},
		{name: "backwards", headers: []string{"Range", "bytes=5-2"}},
		{name: "no numbers", headers: []string{"Range", "bytes=x"}},
		{name: "negative", headers: []string{"Range", "bytes=--4"}},
		{name: "signed", headers: []string{"Range", "bytes=+1-+3"}},
		{name: "empty", headers: []string{"Range", "bytes="}},
		{name: "only a dash", headers: []string{"Range", "bytes=-"}},
		{name: "another unit", headers: []string{"Range", "lines=1-2"}},
		{name: "two ranges", headers: []string{"Range", "bytes=0-1,4-5"}},
		{name: "spaces", headers: []string{"Range", "bytes= 2-4 "}},
		{name: "if-range by tag", headers: []string{"Range", "bytes=2-4", "If-Range", same}},
		{name: "if-range by another tag", headers: []string{"Range", "bytes=2-4", "If-Range", `"x"`}},
		{name: "if-range by a weak tag", headers: []string{"Range", "bytes=2-4", "If-Range", "W/" + same}},
		{name: "if-range by date", headers: []string{"Range", "bytes=2-4", "If-Range", day(0)}},
		{name: "if-range by another date", headers: []string{"Range", "bytes=2-4", "If-Range", day(1)}},
		{name: "if-none-match", headers: []string{"If-None-Match", same}},
		{name: "if-none-match weak", headers: []string{"If-None-Match", "W/" + same}},
		{name: "if-none-match of several", headers: []string{"If-None-Match", `"a", ` + same}},
		{name: "if-none-match of others", headers: []string{"If-None-Match", `"a", "b"`}},
		{name: "if-none-match any", headers: []string{"If-None-Match", "*"}},
		{name: "if-match", headers: []string{"If-Match", same}},
		{name: "if-match of others", headers: []string{"If-Match", `"a"`}},
		{name: "if-match any", headers: []string{"If-Match", "*"}},
		{name: "modified since, yes", headers: []string{"If-Modified-Since", day(-1)}},
		{name: "modified since, no", headers: []string{"If-Modified-Since", day(0)}},
		{name: "unmodified since, yes", headers: []string{"If-Unmodified-Since", day(0)}},
		{name: "unmodified since, no", headers: []string{"If-Unmodified-Since", day(-1)}},
		{name: "a bad range and a condition", headers: []string{"Range", "bytes=x", "If-None-Match", same}},
	}
}

// oddFiles are files that are not ten bytes, or do not stay so.
func oddFiles() []download {
	long := strings.Repeat("drover ", 1000)
	return []download{
		{name: "missing", file: &oneFile{}},
		{name: "a directory", file: &oneFile{kind: "d"}},
		{name: "an empty file", file: newFile("")},
		{name: "a range of an empty file", file: newFile(""), headers: []string{"Range", "bytes=0-3"}},
		{name: "an empty file that is known", file: newFile(""), headers: []string{"If-None-Match", tag(0)}},
		{name: "a file without a size", file: &oneFile{kind: "-", data: []byte("procs 1\n"), at: written}},
		{name: "a range of a file without a size", file: &oneFile{kind: "-", data: []byte("procs 1\n"), at: written}, headers: []string{
			"Range", "bytes=2-4",
		}},
		{name: "a device", file: &oneFile{kind: "c", data: []byte("zzz"), at: written}},
		{name: "a long one", data: long},
		{name: "a long one, compressed", data: long, headers: []string{"Accept-Encoding", "gzip"}},
		{name: "a long one, known, compressed", data: long, headers: []string{"Accept-Encoding", "gzip", "If-None-Match", tag(len(long))}},

		{name: "a range of a long one, compressed", data: long, headers: []string{"Accept-Encoding", "gzip", "Range", "bytes=10-5999"}},
		{name: "a long range", data: long, headers: []string{"Range", "bytes=10-5999"}},
		{name: "the end of a long one", data: long, headers: []string{"Range", "bytes=-3000"}},
		{name: "shrinks", file: &oneFile{kind: "-", data: []byte(ten), size: 20, at: written}},
		{name: "shrinks, compressed", file: &oneFile{kind: "-", data: []byte(long), size: 8000, at: written}, headers: []string{
			"Accept-Encoding", "gzip",
		}},
		{name: "grows", file: &oneFile{kind: "-", data: []byte(ten), size: 5, at: written}},
		{name: "breaks", file: &oneFile{kind: "-", data: []byte(ten), size: 20, at: written, fails: errors.New("the node is gone")}},
		{name: "breaks at once", file: &oneFile{kind: "-", size: 20, at: written, fails: drover.Errorf(drover.Gone, "the runner is gone")}},
	}
}

// The golden file holds a line for each request: what it asked, and what a client sees.
func TestDownloads(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	for _, c := range slices.Concat(partsAndConditions(), oddFiles()) {
		f := c.file
		if f == nil {
			f = newFile(cmp.Or(c.data, ten))
		}
		line := f.download(t, cmp.Or(c.method, "GET"), c.headers...)
		fmt.Fprintf(&out, "%s: %s\n", c.name, line)
		require.Equal(t, len(f.opened), f.closed, "%s: all that is opened is closed", c.name)
	}
	if *update {
		require.NoError(t, os.WriteFile("testdata/downloads.txt", []byte(out.String()), 0o644))
	}
	want, err := os.ReadFile("testdata/downloads.txt")
	require.NoError(t, err)
	require.Equal(t, string(want), out.String())
}

// Who asks for a part that is not among the first bytes has the file opened again: it must be the same one.
func TestADownloadIsOfOneFile(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789", 200)
	for name, c := range map[string]struct {
		next func(*oneFile)
		want string
	}{
		"nothing happens":   {func(*oneFile) {}, `206 "0123456789", length 10, bytes 1000-1009/2000, bytes, attachment, dated, "tag" (2 opened)`},
		"it is written":     {func(f *oneFile) { f.at = f.at.Add(1) }, "cut before its head"},
		"it grows":          {func(f *oneFile) { f.size++ }, "cut before its head"},
		"it is deleted":     {func(f *oneFile) { f.kind = "" }, "cut before its head"},
		"it loses its end":  {func(f *oneFile) { f.data = f.data[:1005] }, "cut before its head"},
		"the node is gone":  {func(f *oneFile) { f.data, f.fails = f.data[:1005], errors.New("gone") }, "cut before its head"},
		"it loses the rest": {func(f *oneFile) { f.data = nil }, "cut before its head"},
	} {
		f := newFile(long)
		f.next = c.next
		require.Equal(t, c.want, f.download(t, "GET", "Range", "bytes=1000-1009"), name)
		require.Equal(t, len(f.opened), f.closed, name)
	}
	f := newFile(long)
	f.download(t, "GET", "Range", "bytes=1000-1009")
	require.Equal(t, []execution.FileRequest{{Path: "file", Length: sniffed}, {Path: "file", Offset: 1000, Length: 10}}, f.opened,
		"the node reads no more than is sent")
	f = newFile(long)
	f.download(t, "HEAD")
	require.Equal(t, []execution.FileRequest{{Path: "file", Length: sniffed}}, f.opened)
}

// Properties of the one range that is served: it is what a slice of the data is, whatever the numbers.
func TestAnyRangeIsASliceOfTheFile(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOfN(rapid.Byte(), 1, 1500).Draw(t, "data")
		from := rapid.IntRange(0, 2000).Draw(t, "from")
		to := rapid.IntRange(0, 2000).Draw(t, "to")
		f := newFile(string(data))
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", from, to))
		err := Download(w, r, f, execution.FileRequest{}, func(execution.FileInfo) {})
		switch {
		case from > to && from < len(data):
			require.Equal(t, http.StatusBadRequest, Status(err))
		case from >= len(data):
			require.Equal(t, http.StatusRequestedRangeNotSatisfiable, Status(err))
		default:
			require.NoError(t, err)
			require.Equal(t, http.StatusPartialContent, w.Code)
			require.Equal(t, data[from:min(to+1, len(data))], w.Body.Bytes())
		}
	})
}
