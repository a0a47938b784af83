package allocrunner

import (
	"bufio"
	"context"
	"errors"
	"io"
	"time"
)

// inherit takes over the data of the allocation that this one replaces, when the group's ephemeral disk is sticky and that one
// was on this node, or when it migrates. It waits until that one has ended. Without it the disk is empty, as Nomad does it too.
func (r *Runner) inherit(life context.Context) {
	disk := r.group.EphemeralDisk
	if disk == nil || !disk.Sticky && !disk.Migrate || r.alloc.PreviousAllocation == "" || r.cfg.Previous == nil {
		return
	}
	previous := r.cfg.Previous(r.alloc.PreviousAllocation)
	if previous == nil {
		if disk.Migrate && r.cfg.Fetch != nil {
			r.migrate(life)
		}
		return
	}
	if !r.awaitEnd(life, previous) || !previous.View().Ended() {
		return
	}
	if !r.buildTasks() {
		return
	}
	if err := r.dir.TakeOver(previous.dir, r.TaskNames()); err != nil {
		r.log.Warn("the previous allocation's data is not taken over whole", "previous", previous.id, "error", err)
	}
}

// buildTasks makes the folders of the tasks, into which data is taken over.
func (r *Runner) buildTasks() bool {
	for _, t := range r.group.Tasks {
		if err := r.dir.BuildTask(t.Name); err != nil {
			r.log.Warn("the previous allocation's data is not taken over", "task", t.Name, "error", err)
			return false
		}
	}
	return true
}

// migrate takes over the data of the allocation that this one replaces from its node, through a server. What cannot be had in time is not
// missed: the disk is empty then. The time is that of a mebibyte a second and a minute more, besides that for the other's end.
func (r *Runner) migrate(life context.Context) {
	if !r.buildTasks() {
		return
	}
	ctx, cancel := context.WithCancel(life)
	defer cancel()
	fetched := make(chan error, 1)
	go func() { fetched <- r.fetch(ctx, cancel) }() // ends with ctx
	for {
		select {
		case err := <-fetched:
			if err != nil {
				r.log.Warn("the previous allocation's data could not be had, and the disk is empty", "previous", r.alloc.PreviousAllocation,
					"error", err)
			}
			return
		case <-r.wake.C():
			if r.stopAsked() {
				cancel()
			}
		}
	}
}

// fetch reads the data. Time counts from its first bytes.
func (r *Runner) fetch(ctx context.Context, cancel func()) error {
	size := r.group.EphemeralDisk.SizeMB
	from, to := io.Pipe()
	ended := make(chan struct{})
	go func() { // ends with ctx, or when the reader is closed
		defer close(ended)
		to.CloseWithError(r.cfg.Fetch(ctx, r.id, to))
	}()
	data := bufio.NewReader(from)
	_, err := data.Peek(1)
	if err == nil {
		late := r.clock.AfterFunc(time.Minute+time.Duration(size)*time.Second, cancel)
		err = r.dir.Adopt(data, r.TaskNames(), int64(size)<<20)
		late.Stop()
	}
	from.CloseWithError(errors.New("it is not read any more"))
	<-ended
	return err
}

// awaitWriters waits until those have ended that write a host volume which this allocation may not write beside them. Control places it
// when they have, but a node that was away may still have to end one that counts as lost.
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
