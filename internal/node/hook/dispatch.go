package hook

import (
	"context"
	"fmt"
	"path/filepath"
)

// dispatchPayload writes a dispatched job's payload into the task's local folder.
type dispatchPayload struct{}

func (dispatchPayload) Name() string { return "dispatch_payload" }

// Once is true: the payload never changes, and the task may have changed the file.
func (dispatchPayload) Once() bool { return true }

// Prestart does nothing for a job without a payload, or a task that asks for none. The file's permissions, 0777, are
// Nomad's.
func (dispatchPayload) Prestart(_ context.Context, r *Request) error {
	if r.Task.DispatchPayload == nil || r.Task.DispatchPayload.File == "" || len(r.Alloc.Job.Payload) == 0 {
		return nil
	}
	root, rel, err := r.place(filepath.Join(r.Dirs.Local, r.Env.Replace(r.Task.DispatchPayload.File)))
	if err != nil {
		return err
	}
	defer root.Close()
	if err := writeFile(root, rel, r.Alloc.Job.Payload, 0o777); err != nil {
		return fmt.Errorf("writing the dispatch payload: %w", err)
	}
	return nil
}
