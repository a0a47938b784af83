package hook

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/artifact"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/taskmachine"
)

// artifacts fetches a task's files.
type artifacts struct{ from *artifact.Fetcher }

func (artifacts) Name() string { return "artifacts" }

// Once is true: the files stay in the task's folder over a restart, and a download again could change a running job.
func (artifacts) Once() bool { return true }

// Prestart fetches the task's artifacts in the order of the job. The first error ends it with a Failure of type "Failed
// Artifact Download", as in Nomad. Errors that a second try cannot mend, such as a wrong checksum, are not recoverable.
func (h artifacts) Prestart(ctx context.Context, r *Request) error {
	if len(r.Task.Artifacts) == 0 {
		return nil
	}
	r.Emit(taskmachine.NewEvent(drover.TaskDownloading, "Client is downloading artifacts"))
	for _, a := range r.Task.Artifacts {
		if err := h.fetch(ctx, r, a); err != nil {
			code := drover.CodeOf(err)
			return &Failure{
				Type: drover.TaskDownloadFailed, Err: fmt.Errorf("failed to download artifact %q: %w", a.GetterSource, err),
				Recoverable: code != drover.Invalid && code != drover.Forbidden && code != drover.NotImplemented && code != drover.TooLarge,
			}
		}
	}
	return nil
}

func (h artifacts) fetch(ctx context.Context, r *Request, a *drover.TaskArtifact) error {
	dest := a.RelativeDest
	if dest == "" {
		dest = "local/"
	}
	root, rel, err := r.place(dest)
	if err != nil {
		return err
	}
	defer root.Close()
	raw := r.Node.Drivers["raw_exec"]
	return h.from.Fetch(ctx, artifact.Request{
		Source: r.Env.Replace(a.GetterSource), Options: replaced(r, a.GetterOptions), Headers: replaced(r, a.GetterHeaders),
		Mode: a.GetterMode, Root: root, Path: rel,
		// What is private of a task nobody reads by the API, also if an agent that dies leaves it.
		Scratch: filepath.Join(filepath.Base(r.Dirs.Task), "private"),
		// The agent may read what a sandbox never may: so only where jobs can read all that themselves, as raw_exec's tasks can that are
		// the agent's own user.
		Local: raw != nil && raw.Healthy && raw.Attributes[driver.OwnUserDenied] == "",
	})
}

// replaced are the values with the task's variables in them.
func replaced(r *Request, in map[string]string) map[string]string {
	out := make(map[string]string, len(in))
	for k, v := range in {
		out[k] = r.Env.Replace(v)
	}
	return out
}
