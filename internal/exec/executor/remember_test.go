package executor

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exec/ledger"
)

// A ledger has executions in the order of their starts, and in none after it was written anew: what ended long ago was
// kept in place of what ended just now.
func TestTheNewestEndsAreRemembered(t *testing.T) {
	t.Parallel()
	cfg := Config{LedgerPath: filepath.Join(t.TempDir(), "ledger"), RetainCount: 2}
	deps := Deps{Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler)}
	before, err := New(cfg, deps)
	require.NoError(t, err)
	now := time.Now()
	for id, ago := range map[string]time.Duration{
		"new": time.Minute, "old": 3 * time.Minute, "newest": time.Second, "older": 4 * time.Minute,
	} {
		r := ledger.Record{
			Execution: execution.Execution{ID: id, Receipt: &execution.Receipt{ExecutionID: id}}, Environment: "e", EndedAt: now.Add(-ago),
		}
		require.NoError(t, before.ledger.Write(r))
	}
	require.NoError(t, before.ledger.Close())
	s, err := New(cfg, deps)
	require.NoError(t, err)
	_, err = s.remember(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.ledger.Close())
	require.NotNil(t, s.find("new"))
	require.NotNil(t, s.find("newest"))
	require.Len(t, s.byID, 2)
}
