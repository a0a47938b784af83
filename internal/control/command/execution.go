package command

import (
	"github.com/drover-project/drover/execution"
)

// TellExecutions puts what happened to executions into the event stream. It keeps nothing of them in the state: executions
// live in their runners. Those that ended count in no quota any more. Result: nil.
type TellExecutions struct {
	Events []ExecutionEvent
	Time   int64 // of what they spent; 0: nobody counts that
}

// ExecutionEvent is one thing that happened to an execution.
type ExecutionEvent struct {
	Type      string // ExecutionStarted, ExecutionEnded
	Namespace string
	Execution execution.Execution // without the variables of its environment, which may be secrets
}

// RecordExecutions is TellExecutions where several servers keep together what happened: how executions ended, for a
// while and within bounds, and which webhooks are still to be told. The first end of an execution counts; another one
// is neither told nor kept. Result: nil. Errors: Exhausted if a start cannot be kept; then nothing of it is.
type RecordExecutions struct {
	Records []ExecutionRecord
	Told    []string // executions whose webhook needs no telling any more
	Time    int64
}

// ExecutionRecord is an event, and what is kept with it. A start is only kept if it has a webhook.
type ExecutionRecord struct {
	Event   ExecutionEvent
	Webhook string `codec:",omitempty"` // to be told of the end
	Request string `codec:",omitempty"` // a digest of the request, if that had an idempotency key
}

// BeginExecution counts an execution that is about to be started in the quota of its runner's namespace, until an event says that it
// ended, or its runner did. Result: bool, whether it was not counted before. Errors: Exhausted beyond the quota; Gone: the runner ended.
type BeginExecution struct{ AllocID, ID string }

// DropExecution counts an execution no more: it could not be started. Result: nil.
type DropExecution struct{ AllocID, ID string }

// Kind implements Command.
func (*BeginExecution) Kind() Kind { return KindBeginExecution }

// Kind implements Command.
func (*DropExecution) Kind() Kind { return KindDropExecution }

// Kind implements Command.
func (*RecordExecutions) Kind() Kind { return KindRecordExecutions }

// Kind implements Command.
func (*TellExecutions) Kind() Kind { return KindTellExecutions }
