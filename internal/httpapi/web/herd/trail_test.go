package herd

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/httpapi/web/html"
)

// TestATrailIsShort: each folder of a path leads to all of it up to there, so that a long address was a thousand times as much memory,
// for anybody who asks.
func TestATrailIsShort(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/ui/runners/r/files", http.NoBody)
	for name, at := range map[string]string{
		"folders": strings.Repeat("a/", 3000), "one": strings.Repeat("a", 60_000), "not ASCII": strings.Repeat("é/", 3000),
	} {
		require.Less(t, len(html.Document(html.El("html", fileTrail(r, at)))), 1<<20, name)
	}
	trail := string(html.Document(html.El("html", fileTrail(r, "/usr/lib/x"))))
	require.Contains(t, trail, "path=%2Fusr%2Flib%2Fx")
	require.Contains(t, trail, "path=%2Fusr%2Flib\"")
}
