package command

import (
	"github.com/drover-project/drover/execution"
)

// TellExecutions puts what happened to executions into the event stream. It changes nothing in the state: executions
// live in their runners. Result: nil.
type TellExecutions struct{ Events []ExecutionEvent }

// ExecutionEvent is one thing that happened to an execution.
type ExecutionEvent struct {
	Type      string // ExecutionStarted, ExecutionEnded
	Namespace string
	Execution execution.Execution // without the variables of its environment, which may be secrets
}

// Kind implements Command.
func (*TellExecutions) Kind() Kind { return KindTellExecutions }
