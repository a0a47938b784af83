package server

import (
	"syscall"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/supervisor/guest/process"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// A supervisor whose main task has ended may serve another: starting a program costs a quarter of what starting a
// supervisor costs. It does so only when the task was all that it ever ran, and with everything of it gone. Between two
// tasks it lives only as long as the agent that keeps it.

// retire lets the ended task go, and every agent but the one that asks. Errors: Conflict, when the next task could meet
// something of this one.
func (s *Server) retire(by *conn) error {
	// The task is let go before the kill, so that nothing can be started behind it.
	if err := s.letGo(); err != nil {
		return err
	}
	if !process.KillAll(s.launcher.Reaper, s.clock) {
		return drover.Errorf(drover.Conflict, "something of the task does not end")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.agents {
		if c != by {
			_ = c.f.Close() // its reader ends
		}
	}
	return nil
}

// letGo forgets the task, from when on nothing can be started. Errors: Conflict.
func (s *Server) letGo() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle || s.stopping || s.task == nil {
		return drover.Errorf(drover.Conflict, "it ran more than one task, or none")
	}
	select {
	case <-s.task.Done():
	default:
		return drover.Errorf(drover.Conflict, "the task has not ended")
	}
	if !s.executions.CloseIfEmpty() {
		return drover.Errorf(drover.Conflict, "it ran more than one task, or none")
	}
	if s.logDir >= 0 {
		_ = syscall.Close(s.logDir)
		s.logDir = -1
	}
	s.idle, s.task = true, nil
	return nil
}

// reuse makes this the supervisor of another task. Errors: Conflict, Invalid.
func (s *Server) reuse(p []byte, fds []int) error {
	boot, err := wire.DecodeBoot(p)
	if err != nil || len(fds) > 1 {
		process.CloseAll(fds)
		return drover.Errorf(drover.Invalid, "the configuration is not one: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.idle || s.stopping {
		process.CloseAll(fds)
		return drover.Errorf(drover.Conflict, "it serves a task")
	}
	// The descriptor is the folder of the new task's logs. Without one its output is thrown away.
	if len(fds) == 1 {
		s.configure(boot, fds[0])
	} else {
		boot.LogTask = ""
		s.configure(boot, -1)
	}
	s.idle = false
	s.executions.Reopen()
	return nil
}
