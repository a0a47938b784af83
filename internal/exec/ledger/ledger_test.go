package ledger

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
)

// A ledger in which more counts than its limit is not written anew for each line.
func TestALargeLedgerIsRarelyWrittenAnew(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger")
	l, err := Open(path)
	require.NoError(t, err)
	text, files := strings.Repeat("x", maxArgv-10), 0
	var last os.FileInfo
	for i := range 6_000 { // 24 MB
		x := execution.Execution{ID: fmt.Sprint(i), Spec: execution.Spec{Argv: []string{text}}}
		require.NoError(t, l.Write(Record{Execution: x}))
		info, err := os.Stat(path)
		require.NoError(t, err)
		if last == nil || !os.SameFile(last, info) {
			files++
		}
		last = info
	}
	require.LessOrEqual(t, files, 4)
	require.NoError(t, l.Close())
	again, err := Open(path)
	require.NoError(t, err)
	records, err := again.Read(time.Time{})
	require.NoError(t, err)
	require.Len(t, records, 6_000)
	require.NoError(t, again.Close())
}
