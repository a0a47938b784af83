package agent

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/node/allocdir"
	"github.com/drover-project/drover/internal/node/hook"
)

// dir returns the allocation's folder. Folders of a task that needs none are made here, when somebody first asks for its
// files. One that was collected is not made again. Errors: NotFound, and those of the file system.
func (a *Agent) dir(allocID string) (allocdir.Dir, error) {
	r, err := a.runner(allocID)
	if err != nil {
		return allocdir.Dir{}, err
	}
	d := r.Dir()
	if a.hasFolder(allocID) && !d.Exists() && !hook.NeedsFolders(r.View().Alloc, r.Group(), a.drivers) {
		err = d.Build()
		for _, t := range r.Group().Tasks {
			err = errors.Join(err, d.BuildTask(t.Name))
		}
	}
	return d, err
}

// hasFolder reports whether the allocation's folder was not removed.
func (a *Agent) hasFolder(allocID string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.allocs[allocID]
	return e != nil && !e.removed
}

// ListFolder lists a folder of the allocation's one.
func (a *Agent) ListFolder(_ context.Context, allocID, path string) ([]drover.AllocFileInfo, error) {
	d, err := a.dir(allocID)
	if err != nil {
		return nil, err
	}
	return d.List(path)
}

// StatFolder describes a file of the allocation's folder.
func (a *Agent) StatFolder(_ context.Context, allocID, path string) (drover.AllocFileInfo, error) {
	d, err := a.dir(allocID)
	if err != nil {
		return drover.AllocFileInfo{}, err
	}
	return d.Stat(path)
}

// ReadFolder reads a file of the allocation's folder; limit 0 = to its end.
func (a *Agent) ReadFolder(_ context.Context, allocID, path string, offset, limit int64) (io.ReadCloser, error) {
	d, err := a.dir(allocID)
	if err != nil {
		return nil, err
	}
	return d.Read(path, offset, limit)
}

// endPatience is how long an allocation that was reported as ended may take to be done with.
const endPatience = 30 * time.Second

// SnapshotFolder streams what a replacement on another node takes over of an allocation that has ended. Errors: NotFound, Conflict while it
// runs.
func (a *Agent) SnapshotFolder(ctx context.Context, allocID string) (io.ReadCloser, error) {
	r, err := a.runner(allocID)
	if err != nil {
		return nil, err
	}
	clock.Await(ctx, a.clock, endPatience, r.Done())
	if !r.View().Ended() {
		return nil, drover.Errorf(drover.Conflict, "allocation %s has not ended", allocID)
	}
	if d := r.Dir(); !d.Exists() {
		return nil, drover.Errorf(drover.NotFound, "the folder of allocation %s was removed", allocID)
	}
	from, to := io.Pipe()
	go func() { // ends with ctx, or when the reader is closed
		to.CloseWithError(r.Dir().Snapshot(ctx, to, r.TaskNames()))
	}()
	return from, nil
}

// Logs streams a task's captured output. A follower is told io.EOF once the task has ended and all was read.
func (a *Agent) Logs(_ context.Context, q exchange.LogRequest) (exchange.LogReader, error) {
	r, err := a.runner(q.AllocID)
	if err != nil {
		return nil, err
	}
	if _, err := a.dir(q.AllocID); err != nil { // makes it, if it is not there yet
		return nil, err
	}
	if q.Path != "" {
		return r.Dir().Follow(q, a.clock, nil)
	}
	if q.Task == "" {
		q.Task = r.DefaultTask()
	}
	if r.Group().Task(q.Task) == nil {
		return nil, drover.Errorf(drover.NotFound, "allocation %s has no task %q", q.AllocID, q.Task)
	}
	return r.Dir().Follow(q, a.clock, func() bool {
		v := r.View()
		s := v.Update.TaskStates[q.Task]
		return v.Ended() || s != nil && s.State == drover.TaskStateDead
	})
}
