package term

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTables(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.NoError(t, Table(&b, "none", "ID|Name", [][]string{{"1", "a\x1b[2Jb\nc"}, {"22", ""}}))
	require.Equal(t, "ID  Name\n1   a [2Jb c\n22  -\n", b.String())
	b.Reset()
	require.NoError(t, Table(&b, "none", "ID", nil))
	require.Equal(t, "none\n", b.String())
	require.Equal(t, "1.5 KiB", Bytes(1536))
	require.Equal(t, "2d3h", Span(51*time.Hour+time.Minute))
	require.Equal(t, "1m1s", Span(61*time.Second))
}
