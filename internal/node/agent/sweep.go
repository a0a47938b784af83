package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/supervisor"
)

// GroupSweeper removes the control groups that keep does not want, with what runs in them. cgroup.Groups is one.
type GroupSweeper interface {
	Sweep(ctx context.Context, clk clock.Clock, keep func(name string) bool) (removed []string, err error)
}

const idLength = 36 // of an allocation's id, with which the names of folders and groups begin

// sweep ends and removes what an earlier agent on this folder left of allocations that have ended, or that are not known
// any more. That agent was killed at the wrong moment, or its local state was lost. Control may hand such an allocation
// out again, and it must not run twice. Other agents of this machine have folders of their own, and their groups are not
// touched.
func (a *Agent) sweep(ctx context.Context) {
	dead, err := a.orphans(ctx)
	if err != nil {
		a.log.Error("looking for what an earlier agent left", "error", err)
	}
	a.mu.Lock()
	for allocID, e := range a.allocs {
		if e.runner.View().Ended() {
			dead[allocID] = true
		}
	}
	a.mu.Unlock()
	ctx, cancel := a.clock.WithTimeout(ctx, reclaimPatience)
	defer cancel()
	if a.networks != nil {
		lives := func(allocID string) bool { return !dead[allocID] && a.previous(allocID) != nil }
		if err := a.networks.Sweep(ctx, lives); err != nil {
			a.log.Error("giving up networks that an earlier agent left", "error", err)
		}
	}
	for _, d := range a.drivers {
		if r, ok := d.(driver.Restorer); ok {
			r.Restored(ctx)
		}
	}
	if a.groups == nil || len(dead) == 0 {
		return
	}
	removed, err := a.groups.Sweep(ctx, a.clock, func(name string) bool { return !dead[name[:min(len(name), idLength)]] })
	if err != nil {
		a.log.Error("removing control groups that an earlier agent left", "error", err)
	}
	if len(removed) > 0 {
		a.log.Warn("removed control groups that an earlier agent left", "groups", removed)
	}
}

// orphans ends the supervisors of allocations that are not in the table, and names these.
func (a *Agent) orphans(ctx context.Context) (dead map[string]bool, err error) {
	dead = map[string]bool{}
	dir := filepath.Join(a.cfg.DataDir, "supervisor")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return dead, err
	}
	var errs []error
	for _, e := range entries {
		name := e.Name()
		allocID := name[:min(len(name), idLength)]
		if strings.HasPrefix(name, ".") || !id.Valid(allocID) || a.previous(allocID) != nil {
			continue
		}
		a.log.Warn("ending what an earlier agent left of an allocation that is not known", "alloc", allocID)
		dead[allocID] = true
		errs = append(errs, a.end(ctx, filepath.Join(dir, name)))
	}
	return dead, errors.Join(errs...)
}

// end ends the supervisor with that state folder and all that it runs, and removes the folder. It takes no longer than
// reclaimPatience, as the agent does not start before.
func (a *Agent) end(ctx context.Context, stateDir string) error {
	ctx, cancel := a.clock.WithTimeout(ctx, reclaimPatience)
	defer cancel()
	return supervisor.Clean(ctx, stateDir, supervisor.Options{Clock: a.clock, Log: a.log})
}
