package execseam

import (
	"context"
	"iter"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/eventstream"
	"github.com/drover-project/drover/internal/control/intake"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/exec/executor"
)

// Teller puts what happens to executions into the log, and by that into the event stream. Where there are several
// servers the state keeps how they ended, too.
type Teller struct {
	Intake *intake.Intake
	Keeps  func() bool // tells whether the state keeps how executions ended
}

// TellExecutions implements executor.Teller.
func (t Teller) TellExecutions(ctx context.Context, events []executor.Event) error {
	if t.Keeps() {
		return t.record(ctx, events)
	}
	list := make([]command.ExecutionEvent, 0, len(events))
	for _, e := range events {
		if e.Type != executor.EventTold { // nobody keeps who was told
			list = append(list, command.ExecutionEvent{Type: e.Type, Namespace: execution.NamespaceOf(e.Execution.RunnerID), Execution: e.Execution})
		}
	}
	if len(list) == 0 {
		return nil
	}
	return t.Intake.TellExecutions(ctx, list)
}

func (t Teller) record(ctx context.Context, events []executor.Event) error {
	records, told := make([]command.ExecutionRecord, 0, len(events)), []string(nil)
	for _, e := range events {
		if e.Type == executor.EventTold {
			told = append(told, e.Execution.ID)
			continue
		}
		records = append(records, command.ExecutionRecord{
			Event:   command.ExecutionEvent{Type: e.Type, Namespace: execution.NamespaceOf(e.Execution.RunnerID), Execution: e.Execution},
			Webhook: e.Webhook, Request: e.Request,
		})
	}
	return t.Intake.RecordExecutions(ctx, records, told)
}

// Records is what the state keeps of executions.
type Records struct {
	Store *store.Store
	Log   interface {
		Ready(ctx context.Context) error
	}
}

// Ready implements executor.Records.
func (r Records) Ready(ctx context.Context) error { return r.Log.Ready(ctx) }

// Execution implements executor.Records.
func (r Records) Execution(id string) *execution.Record {
	return r.Store.Snapshot().Execution(id)
}

// UntoldExecutions implements executor.Records.
func (r Records) UntoldExecutions() iter.Seq[*execution.Record] {
	return r.Store.Snapshot().UntoldExecutions()
}

// namedEvents tells of environments as environments; control knows their jobs only.
type namedEvents struct{ *eventstream.Subscription }

// Next implements cluster.Subscription.
func (n namedEvents) Next(ctx context.Context) (drover.Events, error) {
	events, err := n.Subscription.Next(ctx)
	if err != nil {
		return events, err
	}
	return environment.ShownEvents(events), nil
}
