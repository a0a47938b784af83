package runner_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/runner"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func journalIn(dir string) runner.Config {
	return runner.Config{JournalPath: filepath.Join(dir, "claims.journal")}
}

func claimReq(name string) execution.ClaimRequest {
	return execution.ClaimRequest{Environment: name, Wait: -1}
}

func unique(t testing.TB, seen map[string]bool, r execution.Runner) {
	t.Helper()
	require.False(t, seen[r.AllocID], "runner %s was handed out twice", r.ID)
	seen[r.AllocID] = true
}
