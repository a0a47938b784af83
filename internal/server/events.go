package server

import (
	"context"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/eventstream"
	"github.com/drover-project/drover/internal/control/intake"
	"github.com/drover-project/drover/internal/exec/environment"
	"github.com/drover-project/drover/internal/exec/executor"
)

// teller puts what happens to executions into the log, and by that into the event stream.
type teller struct{ intake *intake.Intake }

// TellExecutions implements executor.Teller.
func (t teller) TellExecutions(ctx context.Context, events []executor.Event) error {
	list := make([]command.ExecutionEvent, len(events))
	for i, e := range events {
		list[i] = command.ExecutionEvent{Type: e.Type, Namespace: environment.Namespace, Execution: e.Execution}
	}
	return t.intake.TellExecutions(ctx, list)
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
