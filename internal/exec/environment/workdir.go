package environment

import (
	"context"
	"io"
	"path"
	"slices"

	"github.com/drover-project/drover/execution"
)

// Files returns a runner's files as those of the environment: relative paths start at its working directory, as its
// executions do.
func Files(env execution.Environment, files execution.Files) execution.Files {
	if env.WorkDir == "" {
		return files // of the image's directory
	}
	return filesFrom{files, env.WorkDir}
}

// filesFrom completes relative paths before it passes the calls on. It changes neither the answers nor the caller's
// slices.
type filesFrom struct {
	execution.Files
	dir string
}

// at keeps what a path ends with: a slash and a star have a meaning.
func (f filesFrom) at(p string) string {
	if path.IsAbs(p) {
		return p
	}
	return f.dir + "/" + p
}

// List serves execution.Files.
func (f filesFrom) List(ctx context.Context, r execution.FileRequest) ([]execution.FileInfo, error) {
	r.Path = f.at(r.Path)
	return f.Files.List(ctx, r)
}

// Read serves execution.Files.
func (f filesFrom) Read(ctx context.Context, r execution.FileRequest) (execution.FileInfo, io.ReadCloser, error) {
	r.Path = f.at(r.Path)
	return f.Files.Read(ctx, r)
}

// Apply serves execution.Files.
func (f filesFrom) Apply(ctx context.Context, changes []execution.FileChange) error {
	changes = slices.Clone(changes)
	for i := range changes {
		changes[i].Path = f.at(changes[i].Path)
	}
	return f.Files.Apply(ctx, changes)
}

// Write serves execution.Files.
func (f filesFrom) Write(ctx context.Context, change execution.FileChange, r io.Reader) error {
	change.Path = f.at(change.Path)
	return f.Files.Write(ctx, change, r)
}

// Archive serves execution.Files.
func (f filesFrom) Archive(ctx context.Context, r execution.FileRequest) (io.ReadCloser, error) {
	r.Path = f.at(r.Path)
	return f.Files.Archive(ctx, r)
}

// Extract serves execution.Files.
func (f filesFrom) Extract(ctx context.Context, r execution.FileRequest, tar io.Reader) error {
	r.Path = f.at(r.Path)
	return f.Files.Extract(ctx, r, tar)
}
