package agent

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
)

// orders adds updates to a pusher and returns what it would send.
func orders(p *pusher, ids ...string) (all []uint64) {
	for _, id := range ids {
		p.add(exchange.AllocUpdate{ID: id, ClientStatus: drover.AllocClientRunning})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, u := range p.ordered() {
		all = append(all, u.Order)
	}
	return all
}

// TestReportsAreOrdered: what is sent later has the larger order, also what is sent again, also by the next agent.
func TestReportsAreOrdered(t *testing.T) {
	t.Parallel()
	cfg := Config{StateDir: t.TempDir()}
	last := uint64(0)
	above := func(all []uint64) {
		t.Helper()
		for _, order := range all {
			require.Greater(t, order, last)
			last = order
		}
	}
	opened := func() *pusher {
		start, err := countStart(cfg)
		require.NoError(t, err)
		return newPusher(nil, "n", start<<startBits, clock.Wall{}, slog.New(slog.DiscardHandler))
	}
	for range 3 {
		p := opened()
		above(orders(p, "a", "b"))
		above(orders(p)) // the same again
	}

	// Who lost the file learns from control how far the node was.
	require.NoError(t, os.Remove(filepath.Join(cfg.StateDir, "starts")))
	p := opened()
	p.know(&drover.Allocation{ID: "a", Reported: last})
	above(orders(p, "a"))
	p = opened()
	p.know(&drover.Allocation{ID: "a"})
	p.learn(&drover.Allocation{ID: "a", Reported: last + 1000})
	last += 1000
	above(orders(p, "b"))
}
