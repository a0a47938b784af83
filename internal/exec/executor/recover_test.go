package executor_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/exec/executor"
)

// After a restart a rogue node named an execution of somebody else's runner as one of its own. It was taken up there, and the
// receipt that the node made up was told to the webhook of the other.
func TestANodeSpeaksOfItsOwnRunnersOnly(t *testing.T) {
	t.Parallel()
	cfg := executor.Config{LedgerPath: filepath.Join(t.TempDir(), "executions")}
	bubble(t, cfg, func(t *testing.T, b *bundle) {
		rogue, err := b.runners.Claim(t.Context(), execution.ClaimRequest{Environment: b.runner.Environment, Wait: time.Minute})
		require.NoError(t, err)
		spec := sh("sleep 1h")
		spec.Detach = -1
		x, err := b.CreateRequest(t.Context(), b.runner.ID, execution.Request{Spec: spec, Webhook: "https://example.org/"})
		require.NoError(t, err)
		synctest.Wait()
		b.stop()
		b.control.Node.Lie(b.runner.AllocID, rogue.AllocID)
		next := b.again(t, cfg)
		defer next.stop()
		defer b.control.Node.Break(rogue.AllocID) // nobody reads what runs there
		time.Sleep(2 * time.Minute)
		found, err := next.Info(t.Context(), x.ID)
		require.NoError(t, err)
		require.Equal(t, b.runner.ID, found.RunnerID)
		require.NotNil(t, found.Receipt)
		require.Equal(t, execution.CauseRunnerGone, found.Receipt.Cause, "what the rogue node says of it counts for nothing")
		require.Equal(t, 1, next.hooks.count())
	})
}
