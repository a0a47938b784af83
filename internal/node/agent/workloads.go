package agent

import (
	"context"
	"io"

	"drover"
	"drover/internal/node/driver"
)

// StartExecution runs a command in a task. Errors: NotFound, Gone, Conflict (not running), NotImplemented.
func (a *Agent) StartExecution(ctx context.Context, allocID, task string, spec drover.ExecutionSpec) (drover.Session, error) {
	e, err := a.execer(allocID, task)
	if err != nil {
		return nil, err
	}
	return e.StartExecution(ctx, spec)
}

// AttachExecution is a further reader of an execution.
func (a *Agent) AttachExecution(ctx context.Context, allocID, task, executionID string, from drover.Offsets) (drover.Session, error) {
	e, err := a.execer(allocID, task)
	if err != nil {
		return nil, err
	}
	return e.AttachExecution(ctx, executionID, from)
}

// Executions lists those of all running tasks.
func (a *Agent) Executions(ctx context.Context, allocID string) ([]drover.Execution, error) {
	r, err := a.runner(allocID)
	if err != nil {
		return nil, err
	}
	var out []drover.Execution
	for task, h := range r.Handles() {
		e, ok := h.(driver.Execer)
		if !ok {
			continue
		}
		list, err := e.Executions(ctx)
		if err != nil {
			return nil, err
		}
		for _, x := range list {
			x.AllocID, x.Task = allocID, task
			out = append(out, x)
		}
	}
	return out, nil
}

func (a *Agent) handle(allocID, task string) (driver.Handle, error) {
	r, err := a.runner(allocID)
	if err != nil {
		return nil, err
	}
	return r.Handle(task)
}

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
func (a *Agent) Files(allocID, task string) drover.Files { return files{a, allocID, task} }

// files looks the task up at each call.
type files struct {
	agent         *Agent
	allocID, task string
}

func (f files) open() (drover.Files, error) {
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
func (f files) List(ctx context.Context, r drover.FileRequest) ([]drover.FileInfo, error) {
	files, err := f.open()
	if err != nil {
		return nil, err
	}
	return files.List(ctx, r)
}

// Read opens a file.
func (f files) Read(ctx context.Context, r drover.FileRequest) (drover.FileInfo, io.ReadCloser, error) {
	files, err := f.open()
	if err != nil {
		return drover.FileInfo{}, nil, err
	}
	return files.Read(ctx, r)
}

// Apply makes changes.
func (f files) Apply(ctx context.Context, changes []drover.FileChange) error {
	files, err := f.open()
	if err != nil {
		return err
	}
	return files.Apply(ctx, changes)
}

// Write replaces one file.
func (f files) Write(ctx context.Context, change drover.FileChange, r io.Reader) error {
	files, err := f.open()
	if err != nil {
		return err
	}
	return files.Write(ctx, change, r)
}

// Archive streams a folder as tar.
func (f files) Archive(ctx context.Context, r drover.FileRequest) (io.ReadCloser, error) {
	files, err := f.open()
	if err != nil {
		return nil, err
	}
	return files.Archive(ctx, r)
}

// Extract unpacks a tar.
func (f files) Extract(ctx context.Context, r drover.FileRequest, tar io.Reader) error {
	files, err := f.open()
	if err != nil {
		return err
	}
	return files.Extract(ctx, r, tar)
}
