package allocrunner

import "github.com/drover-project/drover"

// ClientStatus derives an allocation's status from those of its tasks.
func ClientStatus(states map[string]*drover.TaskState) (status, description string) {
	pending, running := false, false
	for _, s := range states {
		switch s.State {
		case drover.TaskStateDead:
			if s.Failed {
				return drover.AllocClientFailed, "Failed tasks"
			}
		case drover.TaskStateRunning:
			running = true
		default:
			pending = true
		}
	}
	switch {
	case running:
		return drover.AllocClientRunning, "Tasks are running"
	case pending:
		return drover.AllocClientPending, "No tasks have started"
	}
	return drover.AllocClientComplete, "All tasks have completed"
}
