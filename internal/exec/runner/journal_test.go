package runner

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

func TestTheJournalIsCompacted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, err := openJournal(filepath.Join(dir, "j"), 0)
	require.NoError(t, err)
	big := map[string]string{"x": string(make([]byte, 1000))}
	for i := range 400 {
		c := AllocClaim{AllocID: string(rune('a' + i)), Claim: drover.Claim{RunnerID: "r", Env: big}}
		require.NoError(t, j.claim(c))
	}
	keep := AllocClaim{AllocID: "keep"}
	require.NoError(t, j.claim(keep))
	require.NoError(t, j.release("stopped", true))
	var ids []string
	for i := range 400 {
		ids = append(ids, string(rune('a'+i)))
	}
	require.NoError(t, j.claimsRecorded(ids))
	require.NoError(t, j.release("after", true))
	require.NoError(t, j.close())
	again, err := openJournal(filepath.Join(dir, "j"), 0)
	require.NoError(t, err)
	lines, err := again.read()
	require.NoError(t, err)
	require.Len(t, lines, 3)
	require.Less(t, again.log.Size(), int64(1000))
	require.NoError(t, again.close())
}
