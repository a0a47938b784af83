package web

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// logAPI stands for the API's logs: stdout has a megabyte, stderr hostile text, and a task named gone has none.
func logAPI(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	content := hostile
	if q.Get("type") == "stdout" {
		content = strings.Repeat("0123456789abcde\n", 1<<16)
	}
	if q.Get("origin") == "end" {
		var n int
		_, _ = fmt.Sscan(q.Get("offset"), &n)
		content = content[max(0, len(content)-n):]
	}
	switch {
	case q.Get("task") == "gone":
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("no logs of <b>"))
	case q.Has("search") && q.Get("plain") == "true":
		_, _ = w.Write([]byte("found " + q.Get("search") + "\n"))
	case q.Has("search"):
		from := fmt.Sprintf("%s %s %s %s", q.Get("search"), q.Get("file"), q.Get("offset"), q.Get("follow"))
		_, _ = w.Write([]byte(`{"Offset":4096,"File":"alloc/logs/t.stdout.2"}{}`))
		_ = json.NewEncoder(w).Encode(map[string]any{
			"Offset": 100 + len(from), "Data": []byte(from), "File": "alloc/logs/t.stdout.7", "Time": 99,
		})
		_, _ = w.Write([]byte(`{"Offset":200,"Data":"eCB5","File":"alloc/logs/t.stdout.7","Time":-1}`))
	case q.Get("plain") == "true":
		for len(content) > 0 {
			n := min(len(content), 1000)
			if _, err := w.Write([]byte(content[:n])); err != nil {
				panic(http.ErrAbortHandler) // as a relay does
			}
			content = content[n:]
		}
	case q.Has("since") || q.Has("file"):
		file := fmt.Sprintf("%s %s %s %s %s", q.Get("since"), q.Get("file"), q.Get("offset"), q.Get("origin"), q.Get("follow"))
		_ = json.NewEncoder(w).Encode(map[string]any{"Offset": len(file), "Data": []byte(file), "File": "alloc/logs/t.stdout.7"})
	default:
		data := base64.StdEncoding.EncodeToString([]byte("grün"))
		frames := fmt.Sprintf(`{"Offset":105,"Data":%q,"File":"alloc/logs/t.stdout.7"}{}{"Offset":`, data)
		for _, c := range []string{frames[:9], frames[9:], `110,"Data":"AP/+","File":"alloc/logs/t.stdout.7"}`} {
			_, _ = w.Write([]byte(c))
		}
	}
}

func TestALogsEndStandsInItsPage(t *testing.T) {
	t.Parallel()
	h := page(&api{})
	body := ask(t, h, "GET", "/ui/allocations/a1/logs?type=stderr&task="+url.QueryEscape(hostile), "good", nil).Body.String()
	require.Contains(t, body, "&lt;img src=x onerror=alert(1)&gt;\u202Etxt&#34;&#39;</pre>")
	require.Contains(t, body, "logs.js")
	require.NotContains(t, body, allocText.Earlier)
	inert(t, body)
	body = ask(t, h, "GET", "/ui/allocations/a1/logs", "good", nil).Body.String()
	require.Contains(t, body, `txt&#34;&#39;" selected="">`, "the first task")
	require.Contains(t, body, "back=65536\">"+allocText.Earlier)
	require.Equal(t, logPage/16, strings.Count(body, "0123456789abcde\n")+strings.Count(body, "0123456789abcde</pre>"))
	body = ask(t, h, "GET", "/ui/allocations/a1/logs?back=65536", "good", nil).Body.String()
	require.Contains(t, body, "back=131072\">"+allocText.Earlier)
	require.Contains(t, body, "back=0\">"+allocText.Later)
	require.NotContains(t, body, "logs.js", "a page of the past stands")
	w := ask(t, h, "GET", "/ui/allocations/a1/logs", "", nil)
	require.Equal(t, http.StatusForbidden, w.Code)
	require.Contains(t, w.Body.String(), text.Forbidden)
}

func TestALogIsDownloaded(t *testing.T) {
	t.Parallel()
	h := page(&api{})
	w := ask(t, h, "GET", "/ui/allocations/a1/logs/file?task=t", "good", nil)
	require.Equal(t, 1<<20, w.Body.Len())
	require.Equal(t, "attachment; filename=t.stdout.log", w.Header().Get("Content-Disposition"))
	require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
	w = ask(t, h, "GET", "/ui/allocations/a1/logs/file?type=stderr&task="+url.QueryEscape(`"; x="/../a`), "good", nil)
	require.Equal(t, hostile, w.Body.String())
	require.Equal(t, `attachment; filename="\"; x=\"/../a.stderr.log"`, w.Header().Get("Content-Disposition"), "it is quoted")
	w = ask(t, h, "GET", "/ui/allocations/a1/logs/file?task=gone", "good", nil)
	require.Equal(t, http.StatusNotFound, w.Code)
	require.Contains(t, w.Body.String(), "no logs of &lt;b&gt;")
	require.Empty(t, w.Header().Get("Content-Disposition"))
}

type piece struct {
	kind, file uint32
	begins     uint64
	content    string
}

func piecesOf(t *testing.T, b []byte) (all []piece) {
	t.Helper()
	for len(b) > 0 {
		require.GreaterOrEqual(t, len(b), 20)
		end := 20 + binary.BigEndian.Uint32(b[4:])
		all = append(all, piece{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint64(b[12:]), string(b[20:end])})
		b = b[end:]
	}
	return all
}

func TestALiveLogSaysWhereItsPiecesAreFrom(t *testing.T) {
	t.Parallel()
	h := page(&api{})
	w := ask(t, h, "GET", "/ui/allocations/a1/logs/live?task=t", "good", nil)
	require.Equal(t, []piece{{0, 7, 100, "grün"}, {0, 0, 0, ""}, {0, 7, 107, "\x00\xff\xfe"}, {kind: pieceEnd}}, piecesOf(t, w.Body.Bytes()))
	for query, want := range map[string]string{
		"since=2026-03-01T12:30:00.000Z": "2026-03-01T12:30:00.000Z    true",
		"file=7&offset=12":               " alloc/logs/t.stdout.7 12  true",
	} {
		w = ask(t, h, "GET", "/ui/allocations/a1/logs/live?task=t&"+query, "good", nil)
		require.Equal(t, want, piecesOf(t, w.Body.Bytes())[0].content)
	}
	w = ask(t, h, "GET", "/ui/allocations/a1/logs/live?task=gone", "good", nil)
	require.Equal(t, []piece{{pieceError, 0, 0, "no logs of <b>"}}, piecesOf(t, w.Body.Bytes()))
	w = ask(t, h, "GET", "/ui/allocations/a1/logs/live?task=t", "", nil)
	require.Equal(t, []piece{{pieceError, 0, 0, "Permission denied <b>"}}, piecesOf(t, w.Body.Bytes()))
	require.Contains(t, w.Header().Get("Content-Security-Policy"), "default-src 'none'")
}

// TestALogIsSearchedOnItsPage: without a script a page of lines comes, with one the search as it goes on, from where it got to.
func TestALogIsSearchedOnItsPage(t *testing.T) {
	t.Parallel()
	h := page(&api{})
	body := ask(t, h, "GET", "/ui/allocations/a1/logs?task=t&search="+url.QueryEscape(hostile), "good", nil).Body.String()
	require.Contains(t, body, "found &lt;img src=x")
	require.NotContains(t, body, allocText.Earlier)
	inert(t, body)

	w := ask(t, h, "GET", "/ui/allocations/a1/logs/live?task=t&search=x+y&file=3&offset=17", "good", nil).Body.Bytes()
	next := func() (kind, file uint32, begins uint64, content []byte) {
		n := binary.BigEndian.Uint32(w[4:])
		kind, file, begins, content = binary.BigEndian.Uint32(w), binary.BigEndian.Uint32(w[8:]), binary.BigEndian.Uint64(w[12:]), w[20:20+n]
		w = w[20+n:]
		return kind, file, begins, content
	}
	kind, file, begins, content := next()
	require.Equal(t, []any{uint32(pieceData), uint32(2), uint64(4096), 0}, []any{kind, file, begins, len(content)}, "how far was searched")
	kind, file, begins, content = next()
	require.Equal(t, []any{uint32(pieceData), uint32(0), uint64(0), 0}, []any{kind, file, begins, len(content)}, "a sign of life")
	kind, file, begins, content = next()
	require.Equal(t, []any{uint32(pieceFound), uint32(7), uint64(100)}, []any{kind, file, begins})
	require.Equal(t, uint64(99), binary.BigEndian.Uint64(content))
	require.Equal(t, "x y alloc/logs/t.stdout.3 17 ", string(content[8:]))
	_, _, _, content = next()
	require.Equal(t, "\x00\x00\x00\x00\x00\x00\x00\x00x y", string(content), "a time that no script can show is none")
	kind, _, _, _ = next()
	require.Equal(t, uint32(pieceEnd), kind)
}
