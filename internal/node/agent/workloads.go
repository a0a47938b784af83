package agent

import (
	"context"
	"errors"
	"io"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/node/driver"
)

// StartExecution runs a command in a task. Errors: NotFound, Gone, Conflict (not running), NotImplemented.
func (a *Agent) StartExecution(ctx context.Context, allocID, task string, spec execution.Spec) (execution.Session, error) {
	a.refills.MarkUsed()
	e, err := a.execer(allocID, task)
	if err != nil {
		return nil, err
	}
	session, err := e.StartExecution(ctx, spec)
	return session, coded(err, allocID)
}

// AttachExecution is a further reader of an execution.
func (a *Agent) AttachExecution(ctx context.Context, allocID, task, executionID string, from execution.Offsets) (execution.Session, error) {
	e, err := a.execer(allocID, task)
	if err != nil {
		return nil, err
	}
	session, err := e.AttachExecution(ctx, executionID, from)
	return session, coded(err, allocID)
}

// Executions lists those of all running tasks.
func (a *Agent) Executions(ctx context.Context, allocID string) ([]execution.Execution, error) {
	r, err := a.runner(allocID)
	if err != nil {
		return nil, err
	}
	var out []execution.Execution
	for task, h := range r.Handles() {
		e, ok := h.(driver.Execer)
		if !ok {
			continue
		}
		list, err := e.Executions(ctx)
		if errors.Is(err, driver.ErrGone) {
			continue
		}
		if err != nil {
			return nil, coded(err, allocID)
		}
		for _, x := range list {
			x.AllocID, x.Task = allocID, task
			out = append(out, x)
		}
	}
	return out, nil
}

// coded gives the drivers' sentinels the codes that faces know.
func coded(err error, allocID string) error {
	switch {
	case errors.Is(err, driver.ErrGone):
		return drover.Errorf(drover.Gone, "allocation %s: %w", allocID, err)
	case errors.Is(err, driver.ErrNotSupported):
		return drover.Errorf(drover.NotImplemented, "allocation %s: %w", allocID, err)
	}
	return err
}

// handle returns what the driver has of a running task. Errors: NotFound, Conflict if it does not run.
func (a *Agent) handle(allocID, task string) (driver.Handle, error) {
	r, err := a.runner(allocID)
	if err != nil {
		return nil, err
	}
	return r.Handle(task)
}

// execer returns the task's handle as one that runs commands. Errors: those of handle, NotImplemented for a driver that
// cannot.
func (a *Agent) execer(allocID, task string) (driver.Execer, error) {
	h, err := a.handle(allocID, task)
	if err != nil {
		return nil, err
	}
	e, ok := h.(driver.Execer)
	if !ok {
		return nil, drover.Errorf(drover.NotImplemented, "the driver of this task cannot run commands in it")
	}
	return e, nil
}

// Files gives access to what a task sees; an error is that of each call.
func (a *Agent) Files(allocID, task string) execution.Files { return files{a, allocID, task} }

// files looks the task up at each call.
type files struct {
	agent         *Agent
	allocID, task string
}

// open finds the task's files anew for each call, because a restart of the task replaces its handle.
func (f files) open() (execution.Files, error) {
	h, err := f.agent.handle(f.allocID, f.task)
	if err != nil {
		return nil, err
	}
	filer, ok := h.(driver.Filer)
	if !ok {
		return nil, drover.Errorf(drover.NotImplemented, "the driver of this task gives no access to its files")
	}
	return filer.Files(), nil
}

// List lists a folder.
func (f files) List(ctx context.Context, r execution.FileRequest) ([]execution.FileInfo, error) {
	files, err := f.open()
	if err != nil {
		return nil, err
	}
	list, err := files.List(ctx, r)
	return list, coded(err, f.allocID)
}

// Read opens a file.
func (f files) Read(ctx context.Context, r execution.FileRequest) (execution.FileInfo, io.ReadCloser, error) {
	files, err := f.open()
	if err != nil {
		return execution.FileInfo{}, nil, err
	}
	info, body, err := files.Read(ctx, r)
	return info, body, coded(err, f.allocID)
}

// Apply makes changes.
func (f files) Apply(ctx context.Context, changes []execution.FileChange) error {
	files, err := f.open()
	if err != nil {
		return err
	}
	f.agent.refills.MarkUsed()
	return coded(files.Apply(ctx, changes), f.allocID)
}

// Write replaces one file.
func (f files) Write(ctx context.Context, change execution.FileChange, r io.Reader) error {
	files, err := f.open()
	if err != nil {
		return err
	}
	return coded(files.Write(ctx, change, r), f.allocID)
}

// Archive streams a folder as tar.
func (f files) Archive(ctx context.Context, r execution.FileRequest) (io.ReadCloser, error) {
	files, err := f.open()
	if err != nil {
		return nil, err
	}
	body, err := files.Archive(ctx, r)
	return body, coded(err, f.allocID)
}

// Extract unpacks a tar.
func (f files) Extract(ctx context.Context, r execution.FileRequest, tar io.Reader) error {
	files, err := f.open()
	if err != nil {
		return err
	}
	return coded(files.Extract(ctx, r, tar), f.allocID)
}
