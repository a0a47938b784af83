package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// filesAPI stands for the API's files of an allocation: a folder of a folder and hostile files, a long one of two-byte characters, and an
// image.
func filesAPI(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	content := hostile
	switch q.Get("path") {
	case "/long":
		content = strings.Repeat("ü", 1<<16)
	case "/image":
		content = "\x89PNG\x00\xff"
	}
	switch {
	case q.Get("path") == "/secret":
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte("of a <b> secret"))
	case strings.HasPrefix(r.URL.Path, "/v1/client/fs/stat/"):
		_ = json.NewEncoder(w).Encode(drover.AllocFileInfo{Size: int64(len(content)), FileMode: "-rw-r--r--", IsDir: q.Get("path") == "/alloc"})
	case strings.HasPrefix(r.URL.Path, "/v1/client/fs/ls/"):
		_ = json.NewEncoder(w).Encode([]drover.AllocFileInfo{
			{Name: hostile, Size: 2048, ModTime: "2026-01-02T03:04:05Z"}, {Name: "zed", IsDir: true, FileMode: "drwxr-xr-x"},
		})
	default:
		from, limit := 0, len(content)
		_, _ = fmt.Sscan(q.Get("offset"), &from)
		_, _ = fmt.Sscan(q.Get("limit"), &limit)
		_, _ = w.Write([]byte(content[from:min(len(content), from+limit)]))
	}
}

func TestFilesOfAnAllocation(t *testing.T) {
	t.Parallel()
	h := page(&api{})
	body := ask(t, h, "GET", "/ui/allocations/a1/files?path=alloc", "good", nil).Body.String()
	require.Less(t, strings.Index(body, "zed/"), strings.Index(body, "2.0 KiB"), "folders first")
	require.Contains(t, body, "path=%2Falloc%2Fzed")
	require.Contains(t, body, "path=%2Falloc%2F%3Cimg")
	require.Contains(t, body, "2026-01-02 03:04:05")

	body = ask(t, h, "GET", "/ui/allocations/a1/files?path=/x", "good", nil).Body.String()
	require.Contains(t, body, "&lt;img src=x onerror=alert(1)&gt;\u202Etxt&#34;&#39;</pre>")
	require.NotContains(t, body, allocText.Later)
	body = ask(t, h, "GET", "/ui/allocations/a1/files?path=/long", "good", nil).Body.String()
	require.Contains(t, body, "from=65536\">"+allocText.Later)
	body = ask(t, h, "GET", "/ui/allocations/a1/files?path=/long&from=65537", "good", nil).Body.String()
	require.Contains(t, body, "from=1\">"+allocText.Earlier)
	require.Equal(t, 1<<15-1, strings.Count(body, "ü"), "the half of one is left out")
	require.NotContains(t, body, "\uFFFD")
	require.Contains(t, ask(t, h, "GET", "/ui/allocations/a1/files?path=/image", "good", nil).Body.String(), allocText.Binary)

	w := ask(t, h, "GET", "/ui/allocations/a1/files/raw?path=/../image", "good", nil)
	require.Equal(t, "\x89PNG\x00\xff", w.Body.String())
	require.Equal(t, "application/octet-stream", w.Header().Get("Content-Type"))
	require.Equal(t, "attachment; filename=image", w.Header().Get("Content-Disposition"))
	for _, path := range []string{"/ui/allocations/a1/files", "/ui/allocations/a1/files/raw?path=/x"} {
		w = ask(t, h, "GET", path, "", nil)
		require.Equal(t, http.StatusForbidden, w.Code, path)
		require.Contains(t, w.Body.String(), text.Forbidden)
	}
	w = ask(t, h, "GET", "/ui/allocations/a1/files?path="+url.QueryEscape("/secret"), "good", nil)
	require.Equal(t, http.StatusForbidden, w.Code)
	require.Contains(t, w.Body.String(), "of a &lt;b&gt; secret")
}
