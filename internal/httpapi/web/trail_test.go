package web

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/httpapi/web/html"
)

// TestATrailInAnAllocationIsShort: as in a runner.
func TestATrailInAnAllocationIsShort(t *testing.T) {
	t.Parallel()
	require.Less(t, len(html.Document(html.El("html", fileTrail("a", "/"+strings.Repeat("a/", 5000))))), 1<<20)
	require.Contains(t, fileTrail("a", "/local/x").String(), `path=%2Flocal%2Fx"`)
}
