package allocrunner

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/taskmachine"
)

// A fetch that failed is tried again: an agent that is restarted, or a server that is left, is back in that time.
const (
	fetchTries = 5
	fetchPause = time.Second // before the second try, and twice as long before each further one
)

// inherit takes over the data of the allocation that this one replaces, when the group's ephemeral disk is sticky and that one
// was on this node, or when it migrates. It waits until that one has ended. Without it the disk is empty, as Nomad does it too, and
// the history of each task says why.
func (r *Runner) inherit(life context.Context) {
	disk := r.group.EphemeralDisk
	if disk == nil || !disk.Sticky && !disk.Migrate || r.alloc.PreviousAllocation == "" || r.cfg.Previous == nil {
		return
	}
	previous := r.cfg.Previous(r.alloc.PreviousAllocation)
	if previous == nil && (!disk.Migrate || r.cfg.Fetch == nil) {
		return
	}
	if previous != nil && (!r.awaitEnd(life, previous) || !previous.View().Ended()) {
		return
	}
	for _, t := range r.group.Tasks { // into whose folders data is taken over
		if err := r.dir.BuildTask(t.Name); err != nil {
			r.notTakenOver(fmt.Errorf("making the folder of task %q: %w", t.Name, err))
			return
		}
	}
	var err error
	if previous != nil {
		err = r.dir.TakeOver(previous.dir, r.TaskNames())
	} else {
		err = r.migrate(life)
	}
	if err != nil && life.Err() == nil && !r.stopAsked() {
		r.notTakenOver(err)
	}
}

// notTakenOver tells why the disk has not what the previous allocation's had.
func (r *Runner) notTakenOver(err error) {
	r.log.Warn("the previous allocation's data is not taken over", "previous", r.alloc.PreviousAllocation, "error", err)
	why := fmt.Sprintf("The data of allocation %s, which this one replaces, is not on the disk: %v", r.alloc.PreviousAllocation, err)
	for _, t := range r.group.Tasks {
		r.apply(t.Name, taskmachine.Noted{Event: taskmachine.NewEvent(drover.TaskDiskNotTakenOver, why)})
	}
}

// migrate takes over the data of the allocation that this one replaces from its node, through a server. The time is that of a mebibyte
// a second and a minute more, besides that for the other's end.
func (r *Runner) migrate(life context.Context) error {
	ctx, cancel := context.WithCancelCause(life)
	defer cancel(nil)
	fetched := make(chan error, 1)
	go func() { fetched <- r.fetchAgain(ctx, cancel) }() // ends with ctx
	for {
		select {
		case err := <-fetched:
			return err
		case <-r.wake.C():
			if r.stopAsked() {
				cancel(errors.New("the allocation is not to run any more"))
			}
		}
	}
}

// fetchAgain tries until the data is there, until another try can help no more, or until there were enough.
func (r *Runner) fetchAgain(ctx context.Context, cancel context.CancelCauseFunc) error {
	pause := fetchPause
	for try := 1; ; try++ {
		err := r.fetch(ctx, cancel)
		switch code := drover.CodeOf(err); {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case code == drover.NotFound || code == drover.Forbidden || code == drover.Invalid || code == drover.NotImplemented:
			return err
		case try == fetchTries:
			return fmt.Errorf("in %d tries: %w", try, err)
		}
		r.log.Info("the previous allocation's data could not be had; trying again", "previous", r.alloc.PreviousAllocation, "in", pause,
			"error", err)
		if !clock.Sleep(ctx, r.clock, pause) {
			return context.Cause(ctx)
		}
		pause *= 2
	}
}

// fetch reads the data. Time counts from its first bytes; when it is over, cancel ends all tries.
func (r *Runner) fetch(ctx context.Context, cancel context.CancelCauseFunc) error {
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
		most := time.Minute + time.Duration(size)*time.Second
		late := r.clock.AfterFunc(most, func() { cancel(fmt.Errorf("it was not there after %v", most)) })
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
