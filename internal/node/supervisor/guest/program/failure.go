package program

import (
	"errors"
	"syscall"

	"github.com/drover-project/drover/internal/node/supervisor/spawn"
)

// The exit codes of commands that could not be started, as shells have them.
const (
	exitCannotRun = 126
	exitNotFound  = 127
)

// Failure is a command that cannot be started: a result, not an error of ours.
type Failure struct {
	Exit   int // as shells have it
	Reason string
}

// CannotRun is the failure of a command whose descriptors could not be made.
func CannotRun(err error) error { return &Failure{exitCannotRun, err.Error()} }

func (f *Failure) Error() string { return f.Reason }

// explain turns a failed start into a *Failure that a person understands.
func explain(err error, program, dir string) error {
	var e *spawn.Error
	if !errors.As(err, &e) {
		return err
	}
	switch {
	case e.Step == spawn.StepExec && e.Errno == syscall.ENOENT:
		return &Failure{exitNotFound, "command not found: " + program}
	case e.Step == spawn.StepExec && e.Errno == syscall.EACCES:
		return &Failure{exitCannotRun, "permission denied: " + program}
	case e.Step == spawn.StepExec && e.Errno == syscall.ENOEXEC:
		return &Failure{exitCannotRun, "not a program (no #! line?): " + program}
	case e.Step == spawn.StepUser && e.Errno == syscall.EINVAL: // not one of the user namespace
		return &Failure{exitCannotRun, "no such user id in this sandbox (one that was made without root has only one)"}
	case e.Step == spawn.StepDir && e.Errno == syscall.ENOENT:
		return &Failure{exitCannotRun, "no such directory: " + dir}
	case e.Step == spawn.StepDir && e.Errno == syscall.ENOTDIR:
		return &Failure{exitCannotRun, "not a directory: " + dir}
	case e.Step == spawn.StepDir:
		return &Failure{exitCannotRun, "cannot enter directory " + dir + ": " + e.Errno.Error()}
	default:
		return &Failure{exitCannotRun, e.Error()}
	}
}
