package agent

import (
	"context"

	"github.com/drover-project/drover/internal/node/allocrunner"
)

// restore puts back what the node had when the agent ended. Running tasks are attached to at once; what cannot be
// found waits for control.
func (a *Agent) restore() error {
	records, err := a.state.Load()
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, record := range records {
		id := record.Alloc.ID
		dir, err := a.root.Dir(id)
		if err != nil {
			a.log.Error("a stored allocation is not restored", "alloc", id, "error", err)
			continue
		}
		r, err := allocrunner.Restore(a.runnerCfg, record, dir)
		if err != nil {
			a.log.Error("a stored allocation is not restored", "alloc", id, "error", err)
			continue
		}
		e := a.start(r, id, func(context.Context) {})
		e.removed = r.View().Ended() && !dir.Exists()
	}
	if len(records) > 0 {
		a.log.Info("restored what ran before the agent's restart", "allocations", len(records))
	}
	return nil
}
