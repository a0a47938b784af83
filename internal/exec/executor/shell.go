package executor

import (
	"context"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// bash is preferred where the image has it, as people's commands are written for it.
const bash, sh = "/bin/bash", "/bin/sh"

// maxShells bounds the memory of which image has which shell.
const maxShells = 1_000

// Shell returns the argv that runs a command line in the runner's shell. It asks the runner once for each image.
// Errors: NotFound, Gone, Unavailable.
func (s *Executor) Shell(ctx context.Context, runnerID, command string) (argv []string, err error) {
	use, err := s.deps.Runners.Use(ctx, runnerID)
	if err != nil {
		return nil, err
	}
	defer use.Done()
	env := use.Environment()
	key := env.Driver + " " + env.Image
	s.mu.Lock()
	shell, known := s.shells[key]
	s.mu.Unlock()
	if !known {
		if shell, err = findShell(ctx, use.Workloads().Files(use.Runner().AllocID, taskName)); err != nil {
			return nil, err
		}
		s.mu.Lock()
		if len(s.shells) >= maxShells {
			clear(s.shells)
		}
		s.shells[key] = shell
		s.mu.Unlock()
	}
	return []string{shell, "-c", command}, nil
}

// findShell looks for bash by reading one byte of it, as root. Only an answer about the file decides for sh: an
// error of the runner is returned, otherwise sh would be remembered for the whole image.
func findShell(ctx context.Context, files execution.Files) (string, error) {
	_, r, err := files.Read(ctx, execution.FileRequest{Path: bash, Length: 1, Privileged: true})
	switch drover.CodeOf(err) {
	case drover.NotFound, drover.Forbidden, drover.Invalid:
		return sh, nil
	}
	if err != nil {
		return "", err
	}
	return bash, r.Close()
}
