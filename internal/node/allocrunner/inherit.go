package allocrunner

import "context"

// inherit takes over the data of the allocation that this one replaces, when the group's ephemeral disk is sticky and that one
// was on this node. It waits until that one has ended. Without it the disk is empty, as Nomad does it too.
func (r *Runner) inherit(life context.Context) {
	disk := r.group.EphemeralDisk
	if disk == nil || !disk.Sticky && !disk.Migrate || r.alloc.PreviousAllocation == "" || r.cfg.Previous == nil {
		return
	}
	previous := r.cfg.Previous(r.alloc.PreviousAllocation)
	if previous == nil {
		return
	}
	if !r.awaitEnd(life, previous) || !previous.View().Ended() {
		return
	}
	for _, t := range r.group.Tasks {
		if err := r.dir.BuildTask(t.Name); err != nil {
			r.log.Warn("the previous allocation's data is not taken over", "task", t.Name, "error", err)
			return
		}
	}
	if err := r.dir.TakeOver(previous.dir, r.TaskNames()); err != nil {
		r.log.Warn("the previous allocation's data is not taken over whole", "previous", previous.id, "error", err)
	}
}

// awaitWriters waits until those have ended that write a host volume which this allocation may not write beside them. Control places it when
// they have, but a node that was away may still have to end one that counts as lost.
func (r *Runner) awaitWriters(life context.Context) {
	if r.cfg.Writers == nil {
		return
	}
	for _, other := range r.cfg.Writers(r.alloc) {
		r.log.Info("waiting for the allocation that writes the same volume", "other", other.id)
		if !r.awaitEnd(life, other) {
			return
		}
	}
}

// awaitEnd waits until another allocation has ended; false if there is no use in that any more.
func (r *Runner) awaitEnd(life context.Context, other *Runner) bool {
	for !r.stopAsked() {
		select {
		case <-other.Done():
			return !r.stopAsked()
		case <-r.wake.C():
		case <-life.Done():
			return false
		}
	}
	return false
}

// stopAsked reports whether there is no use in waiting.
func (r *Runner) stopAsked() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.remove || r.latest.ServerTerminal()
}
