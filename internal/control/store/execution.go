package store

import (
	"fmt"
	"iter"

	"github.com/hashicorp/go-memdb"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/tables"
)

// The indexes of executions: those that nobody has to be told of any more, the oldest first, and the others.
const (
	indexAge    = "age"
	indexUntold = "untold"
)

// ExecutionTotals is how much is kept of executions.
type ExecutionTotals struct {
	Count, Untold int
	Bytes         int // as Record.Size counts them
}

func executionTable() *memdb.TableSchema {
	return table(tables.Executions, func(r *execution.Record) string { return term(r.Execution.ID) },
		index(indexAge, func(r *execution.Record) string {
			if r.Webhook != "" {
				return ""
			}
			return fmt.Sprintf("%016x", uint64(r.At)) + term(r.Execution.ID)
		}),
		index(indexUntold, func(r *execution.Record) string {
			if r.Webhook == "" {
				return ""
			}
			return term(r.Execution.ID)
		}))
}

// Execution returns what is kept of an execution, or nil.
func (r *reader) Execution(id string) *execution.Record {
	return get[execution.Record](r, tables.Executions, term(id))
}

// Executions yields what is kept of executions, by id.
func (r *reader) Executions() iter.Seq[*execution.Record] {
	return scan[execution.Record](r, tables.Executions, indexID, "")
}

// UntoldExecutions yields those that run or ended and have a webhook that was not told, by id.
func (r *reader) UntoldExecutions() iter.Seq[*execution.Record] {
	return scan[execution.Record](r, tables.Executions, indexUntold, "")
}

// ToldExecutions yields those that nobody has to be told of any more, in the order in which their ends were recorded.
func (r *reader) ToldExecutions() iter.Seq[*execution.Record] {
	return scan[execution.Record](r, tables.Executions, indexAge, "")
}

// ExecutionTotals returns how much is kept of executions.
func (r *reader) ExecutionTotals() ExecutionTotals { return r.executions }

// PutExecution keeps what is known of an execution.
func (t *Txn) PutExecution(r *execution.Record) {
	t.executions.count(t.Execution(r.Execution.ID), -1)
	t.insert(tables.Executions, r)
	t.touch(tables.Executions, "") // nobody watches a single one
	t.executions.count(r, 1)
}

// DeleteExecution forgets an execution.
func (t *Txn) DeleteExecution(r *execution.Record) {
	t.remove(tables.Executions, r)
	t.touch(tables.Executions, "")
	t.executions.count(r, -1)
}

// RestoreExecution stores what a snapshot on disk has of an execution.
func (t *Txn) RestoreExecution(r *execution.Record) {
	t.insert(tables.Executions, r)
	t.executions.count(r, 1)
}

// count adds a record, or takes it away; nil is none.
func (c *ExecutionTotals) count(r *execution.Record, sign int) {
	if r == nil {
		return
	}
	c.Count += sign
	c.Bytes += sign * r.Size()
	if r.Webhook != "" {
		c.Untold += sign
	}
}
