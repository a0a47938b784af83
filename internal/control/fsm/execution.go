package fsm

import (
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/quotas"
)

// The bounds of what is kept of executions. The oldest ends give way, but none whose webhook is still to be told: of
// those there are no more than the bound, since no start is kept beyond it.
const (
	maxExecutions     = 10_000
	maxExecutionBytes = 16 << 20
	executionsKeptFor = 15 * time.Minute
)

// tellExecutions tells what happened to executions.
func (e *entry) tellExecutions(c *command.TellExecutions) {
	for i := range c.Events {
		e.tellExecution(&c.Events[i], c.Time)
	}
}

// tellExecution tells one event. The filter keys are the runner, its environment's id, as in the events of that, and its allocation. What
// ended counts in no quota.
func (e *entry) tellExecution(ev *command.ExecutionEvent, now int64) {
	x := &ev.Execution
	if !x.Running {
		quotas.DropExecution(e.txn, x.AllocID, x.ID)
		quotas.Spend(e.txn, ev, now)
	}
	_, env := execution.SplitKey(strings.TrimSuffix(x.RunnerID, "-"+x.AllocID))
	e.told = append(e.told, e.event(drover.TopicExecution, ev.Type, x.ID, ev.Namespace, []string{x.RunnerID, env, x.AllocID}, "Execution", x))
}

// recordExecutions tells what happened to executions and keeps what a server must know of them that did not see it
// happen. Several servers may report one execution: of its ends the first in the log counts.
func (e *entry) recordExecutions(c *command.RecordExecutions) error {
	if err := e.checkRoom(c); err != nil {
		return err
	}
	for i := range c.Records {
		r := &c.Records[i]
		x := &r.Event.Execution
		old := e.txn.Execution(x.ID)
		if old != nil && !old.Execution.Running {
			continue
		}
		e.tellExecution(&r.Event, c.Time)
		if !x.Running || r.Webhook != "" {
			e.txn.PutExecution(&execution.Record{Execution: *x, Webhook: r.Webhook, Request: r.Request, At: c.Time})
		}
	}
	for _, id := range c.Told {
		if old := e.txn.Execution(id); old != nil && old.Webhook != "" {
			told := *old
			told.Webhook = ""
			e.txn.PutExecution(&told)
		}
	}
	e.trimExecutions(c.Time)
	return nil
}

// checkRoom refuses starts with webhooks beyond the bound. Errors: Exhausted.
func (e *entry) checkRoom(c *command.RecordExecutions) error {
	starts := 0
	for i := range c.Records {
		if r := &c.Records[i]; r.Event.Execution.Running && r.Webhook != "" {
			starts++
		}
	}
	if untold := e.txn.ExecutionTotals().Untold; starts > 0 && untold+starts > maxExecutions {
		return drover.Errorf(drover.Exhausted, "%d executions with webhooks run or are still to be told", untold)
	}
	return nil
}

// trimExecutions forgets what was kept long enough, and the oldest of too much.
func (e *entry) trimExecutions(now int64) {
	total := e.txn.ExecutionTotals()
	var gone []*execution.Record
	for r := range e.txn.ToldExecutions() {
		if total.Count <= maxExecutions && total.Bytes <= maxExecutionBytes && now-r.At < int64(executionsKeptFor) {
			break
		}
		total.Count--
		total.Bytes -= r.Size()
		gone = append(gone, r)
	}
	for _, r := range gone {
		e.txn.DeleteExecution(r)
	}
}
