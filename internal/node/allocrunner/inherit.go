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
	for !r.stopAsked() {
		select {
		case <-previous.Done():
		case <-r.wake.C():
			continue
		case <-life.Done():
			return
		}
		break
	}
	if r.stopAsked() || !previous.View().Ended() {
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

// stopAsked reports whether there is no use in waiting.
func (r *Runner) stopAsked() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.remove || r.latest.ServerTerminal()
}
