package agent

import (
	"cmp"
	"context"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/localstate"
)

// forgetAfter is how long an answer of control may be under way that was made before it heard of an end.
const forgetAfter = time.Minute

// collectPace is the least time between two looks at the ended allocations.
const collectPace = time.Second

// collectLoop removes folders of ended allocations, when one ended and each interval.
func (a *Agent) collectLoop(ctx context.Context) {
	next := a.clock.Now().Add(a.cfg.GC.Interval)
	for {
		timer := a.clock.NewTimer(next.Sub(a.clock.Now()))
		select {
		case <-timer.C():
		case <-a.collect.C():
		case <-ctx.Done(): // the next agent collects
			timer.Stop()
			return
		}
		timer.Stop()
		a.collectUsed(ctx)
		switch due := !a.clock.Now().Before(next); {
		case due:
			next = a.clock.Now().Add(a.cfg.GC.Interval)
			a.collectOnce(ctx)
		case !a.starting() || a.diskFull():
			a.collectOnce(ctx)
		default:
			a.collect.Send() // later: tasks that start come before folders that nobody needs
		}
		if !clock.Sleep(ctx, a.clock, collectPace) {
			return
		}
	}
}

// starting reports whether tasks are being started now.
func (a *Agent) starting() bool { return len(a.runnerCfg.Shared.Slots) > 0 }

// corpse is an ended allocation whose folder may be removed.
type corpse struct {
	id      string
	entry   *entry
	endedAt time.Time
}

// collectOnce removes what is too many, too old, or in the way of a full disk; the longest ended first. It stops when ctx ends:
// thousands of folders take minutes.
func (a *Agent) collectOnce(ctx context.Context) {
	gc := a.cfg.GC
	now := a.clock.Now()
	corpses := a.corpses()
	full := len(corpses) > 0 && a.diskFull()
	if full && now.Sub(corpses[0].endedAt) >= gc.MinAge {
		a.log.Warn("the data folder's disk is full: removing ended allocations, with their logs, until it is not",
			"limit_percent", gc.DiskPercent, "see", "client.gc_disk_usage_threshold and gc_inode_usage_threshold")
	}
	for i, c := range corpses {
		age := now.Sub(c.endedAt)
		over := len(corpses)-i > gc.MaxAllocs
		old := gc.MaxAge > 0 && age >= gc.MaxAge
		if age < gc.MinAge || !over && !old && !full || ctx.Err() != nil {
			break // and so is what ended later
		}
		a.remove(c)
		full = full && a.diskFull()
	}
	a.dropForgotten()
}

// collectUsed forgets the runners that were used up and ended well, whatever their number: nobody asks for one again,
// most have no folder, and there may be hundreds a second.
func (a *Agent) collectUsed(ctx context.Context) {
	now := a.clock.Now()
	for _, c := range a.corpses() {
		if ctx.Err() != nil {
			break
		}
		v := c.entry.runner.View()
		stopped := v.Alloc.Claim != nil || v.Alloc.ServerTerminal() // or released before its claim was recorded
		if g := c.entry.runner.Group(); g.Pool != nil && stopped && v.Update.ClientStatus == drover.AllocClientComplete &&
			now.Sub(c.endedAt) >= a.cfg.GC.MinAge {
			a.remove(c)
		}
	}
	a.dropForgotten()
}

// corpses lists ended allocations with a folder, the longest ended first.
func (a *Agent) corpses() []corpse {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []corpse
	for id, e := range a.allocs {
		if v := e.runner.View(); v.Ended() && !e.removed {
			out = append(out, corpse{id, e, time.Unix(0, v.EndedAt)})
		}
	}
	slices.SortFunc(out, func(x, y corpse) int { return cmp.Or(x.endedAt.Compare(y.endedAt), cmp.Compare(x.id, y.id)) })
	return out
}

// remove deletes the folder of an ended allocation. It waits for the runner's goroutine, which may still write there. On
// an error the folder stays in the list, and the next round tries it again.
func (a *Agent) remove(c corpse) {
	<-c.entry.runner.Done()
	if err := c.entry.runner.Dir().Remove(c.entry.runner.TaskNames()...); err != nil {
		a.log.Error("an allocation's folder cannot be removed", "alloc", c.id, "error", err)
		return
	}
	a.disk.Forget(c.id)
	a.mu.Lock()
	c.entry.removed = true
	a.mu.Unlock()
}

// dropForgotten takes out of the table what has no folder and what control will not list again. An allocation that
// control may still list stays known, so that it cannot be started again.
func (a *Agent) dropForgotten() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.clock.Now()
	var gone []localstate.Change
	for id, e := range a.allocs {
		heard := a.pusher.heardEnd(id)
		if !e.removed || !e.unlisted && (heard.IsZero() || now.Sub(heard) < forgetAfter) {
			continue
		}
		delete(a.allocs, id)
		a.pusher.forget(id)
		gone = append(gone, localstate.Drop(id, e.runner.TaskNames()...)...)
	}
	if len(gone) > 0 {
		a.state.Queue(gone...)
	}
}

// diskFull reports whether the data folder's disk has more bytes or inodes in use than the configuration allows. A disk
// that cannot be asked counts as not full, so that no folder goes by mistake.
func (a *Agent) diskFull() bool {
	var st unix.Statfs_t
	if unix.Statfs(a.root.Path(), &st) != nil {
		return false
	}
	bytes, inodes := fullness(&st)
	return bytes >= a.cfg.GC.DiskPercent || inodes >= a.cfg.GC.InodePercent
}

// fullness returns how much of a file system's bytes and inodes is in use, in percent of what an ordinary user may use.
// It counts as df does: blocks that are reserved for root, or lie beyond a quota, are neither free nor used.
func fullness(st *unix.Statfs_t) (bytes, inodes float64) {
	used := float64(st.Blocks - st.Bfree)
	if all := used + float64(st.Bavail); all > 0 {
		bytes = 100 * used / all
	}
	if st.Files > 0 {
		inodes = 100 * (1 - float64(st.Ffree)/float64(st.Files))
	}
	return bytes, inodes
}

// CollectGarbage removes the folders of ended allocations: one, or all with allocID "". Errors: NotFound, Conflict
// (it has not ended).
func (a *Agent) CollectGarbage(_ context.Context, allocID string) error {
	if allocID != "" {
		r, err := a.runner(allocID)
		if err != nil {
			return err
		}
		if !r.View().Ended() {
			return drover.Errorf(drover.Conflict, "allocation %s has not ended", allocID)
		}
	}
	for _, c := range a.corpses() {
		if allocID == "" || c.id == allocID {
			a.remove(c)
		}
	}
	a.dropForgotten()
	return nil
}
