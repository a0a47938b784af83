package server

import (
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/node/supervisor/guest/executions"
	"github.com/drover-project/drover/internal/node/supervisor/guest/process"
	"github.com/drover-project/drover/internal/node/supervisor/guest/task"
	"github.com/drover-project/drover/internal/node/supervisor/wire"
)

// startTask starts the main process, once, and returns its pid. Errors: Conflict, Gone, Invalid with the reason.
func (s *Server) startTask(req wire.Task, fds []int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopping || s.idle:
		process.CloseAll(fds)
		return 0, executions.ErrStopping
	case s.task != nil:
		process.CloseAll(fds)
		return 0, drover.Errorf(drover.Conflict, "the main task was started before")
	}
	t, err := task.Start(s.launcher, s.logDir, req, fds)
	if err != nil {
		return 0, err
	}
	s.task = t
	return t.Pid(), nil
}

// mainTask returns the main task. Errors: Conflict.
func (s *Server) mainTask() (*task.Task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.task == nil {
		return nil, drover.Errorf(drover.Conflict, "no main task was started")
	}
	return s.task, nil
}

// signalTask signals the main task. Errors: Invalid, Conflict, Gone.
func (s *Server) signalTask(name string) error {
	t, err := s.mainTask()
	if err != nil {
		return err
	}
	return t.Signal(name)
}

// stopTask stops the main task, and returns when it is over. Errors: Invalid, Conflict.
func (s *Server) stopTask(name string, timeout time.Duration) error {
	t, err := s.mainTask()
	if err != nil {
		return err
	}
	return t.Stop(name, timeout)
}
