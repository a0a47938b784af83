package allocrunner

import "github.com/drover-project/drover"

// Stages of a task in its allocation's lifecycle.
type stage uint8

const (
	stagePrestart stage = iota
	stageMain
	stagePoststart
	stagePoststop
)

// stageOf returns when in the lifecycle a task starts; one without a lifecycle block is a main task.
func stageOf(t *drover.Task) stage {
	if t.Lifecycle == nil {
		return stageMain
	}
	switch t.Lifecycle.Hook {
	case drover.HookPrestart:
		return stagePrestart
	case drover.HookPoststart:
		return stagePoststart
	case drover.HookPoststop:
		return stagePoststop
	}
	return stageMain
}

// sidecar reports whether the task runs along with the main tasks, and is not expected to end.
func sidecar(t *drover.Task) bool {
	return t.Lifecycle != nil && t.Lifecycle.Sidecar && t.Lifecycle.Hook != drover.HookPoststop
}

// stateOf returns a task's state; a task without one has not begun.
type stateOf func(name string) *drover.TaskState

// open returns the last stage whose tasks may start, of those before poststop.
func open(tasks []*drover.Task, state stateOf) stage {
	for _, t := range tasks {
		if stageOf(t) == stagePrestart && !prestartDone(t, state(t.Name)) {
			return stagePrestart
		}
	}
	for _, t := range tasks {
		if stageOf(t) == stageMain && state(t.Name).State == drover.TaskStatePending {
			return stageMain
		}
	}
	return stagePoststart
}

// prestartDone reports whether the task lets the main tasks start: a sidecar has to run, any other to have ended well.
func prestartDone(t *drover.Task, s *drover.TaskState) bool {
	if sidecar(t) {
		return s.State == drover.TaskStateRunning
	}
	return s.State == drover.TaskStateDead && !s.Failed
}

// onlyPoststopLeft reports whether every other task is dead.
func onlyPoststopLeft(tasks []*drover.Task, state stateOf) bool {
	for _, t := range tasks {
		if stageOf(t) != stagePoststop && state(t.Name).State != drover.TaskStateDead {
			return false
		}
	}
	return true
}

// onlySidecarsLeft reports whether the main tasks and what is not a sidecar have ended, but a sidecar has not.
func onlySidecarsLeft(tasks []*drover.Task, state stateOf) bool {
	left := false
	for _, t := range tasks {
		dead := state(t.Name).State == drover.TaskStateDead
		switch {
		case stageOf(t) == stagePoststop:
		case sidecar(t):
			left = left || !dead
		case !dead:
			return false
		}
	}
	return left
}
