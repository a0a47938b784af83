package agent

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/rotation"
)

// leftFile is there after the node had itself drained: it says so when it is back.
func (a *Agent) leftFile() string { return filepath.Join(a.cfg.StateDir, "left") }

// lastStops is how long Leave waits for what control stops at the deadline.
const lastStops = 15 * time.Second

// asking is how long Leave waits until control knows: one that cannot be asked does not keep the agent. askAgain is between two questions.
const (
	asking   = 15 * time.Second
	askAgain = time.Second
)

var systemTypes = []string{drover.JobTypeSystem, drover.JobTypeSysBatch}

// Leave has control move away what runs on the node, and returns when nothing is left that the drain is about, or somewhat after its
// deadline. Errors: control's, where it cannot be asked; ctx's.
func (a *Agent) Leave(ctx context.Context, spec drover.DrainSpec) error {
	control, ok := a.control.(exchange.Drains)
	if !ok {
		return drover.Errorf(drover.NotImplemented, "control does not drain nodes that leave")
	}
	if err := a.askToLeave(ctx, control, &spec); err != nil {
		return err
	}
	if spec.Deadline != 0 { // else there is no end
		var cancel context.CancelFunc
		ctx, cancel = a.clock.WithTimeout(ctx, max(spec.Deadline, 0)+a.cfg.MaxKillTimeout+lastStops)
		defer cancel()
	}
	for _, r := range a.runners() { // control gives a node that is drained nothing new
		if job := r.View().Alloc.Job; spec.IgnoreSystemJobs && job != nil && slices.Contains(systemTypes, job.Type) {
			continue
		}
		select {
		case <-r.Done():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	a.pusher.flush(ctx)
	return nil
}

// askToLeave has control know that the node leaves. Errors: as Leave.
func (a *Agent) askToLeave(ctx context.Context, control exchange.Drains, spec *drover.DrainSpec) error {
	ctx, cancel := a.clock.WithTimeout(ctx, asking)
	defer cancel()
	a.leave()
	// Before the first, nothing is known of what runs. Before the second, control may still be told that the node is back.
	for _, ready := range []chan struct{}{a.restored, a.back} {
		select {
		case <-ready:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if !a.cfg.InMemory {
		if err := rotation.WriteFile(a.leftFile(), a.clock.Now().UTC().AppendFormat(nil, time.RFC3339)); err != nil {
			return err
		}
	}
	for {
		err := control.DrainSelf(ctx, a.identity.ID, spec)
		// An election takes seconds, and what was not answered may be done: it is the same to ask again.
		if err == nil || drover.CodeOf(err) == drover.NotImplemented || !clock.Sleep(ctx, a.clock, askAgain) {
			return err
		}
	}
}

// comeBack tells control that the node, which had itself drained when it left, is back. It ends with ctx, when control knows, or when the
// node leaves again.
func (a *Agent) comeBack(ctx context.Context) {
	defer close(a.back)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.leaving, cancel)() //nolint:contextcheck // it watches the leaving
	control, ok := a.control.(exchange.Drains)
	if _, err := os.Lstat(a.leftFile()); !ok || a.cfg.InMemory || err != nil || !clock.Await(ctx, a.clock, clock.Forever, a.known) {
		return
	}
	for {
		err := control.DrainSelf(ctx, a.identity.ID, nil)
		if err == nil || drover.CodeOf(err) == drover.NotImplemented {
			if err := os.Remove(a.leftFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
				a.log.Error("remembering that the node is back", "error", err)
			}
			return
		}
		if !clock.Sleep(ctx, a.clock, retryMax) {
			return
		}
	}
}
