package execution

import "time"

// Record is what servers keep together of an execution: how it ended, and whom to tell of it.
type Record struct {
	Execution Execution // without variables, with at most a few KB of the command
	Webhook   string    // to be told of the end; "": nobody, or it was told
	Request   string    // a digest of the request, if that had an idempotency key
	At        int64     // when its end was recorded or, while it runs, its start; unix nanoseconds
}

// Time is when its end was recorded or, while it runs, its start.
func (r *Record) Time() time.Time { return time.Unix(0, r.At) }

// recordSize is about what a record takes beside its texts.
const recordSize = 512

// Size is about how many bytes it takes; the same record has the same size everywhere.
func (r *Record) Size() int {
	x := &r.Execution
	n := recordSize + len(x.ID) + len(x.RunnerID) + len(x.AllocID) + len(x.Task) + len(x.Spec.WorkDir) + len(x.Spec.User) +
		len(r.Webhook) + len(r.Request)
	for _, a := range x.Spec.Argv {
		n += len(a)
	}
	if x.Receipt != nil {
		n += len(x.Receipt.Error)
	}
	return n
}
