package sim

import (
	"context"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/control/intake"
	"github.com/drover-project/drover/internal/control/scheduler"
	"github.com/drover-project/drover/internal/control/store"
	"github.com/drover-project/drover/internal/sim/scenario"
)

// Extra is what another package adds to a world with one server: steps of its own, and what it checks. A text that it returns
// says what is broken, or not at rest; "" is nothing.
type Extra interface {
	// Step performs a step that this package does not know.
	Step(ctx context.Context, in *intake.Intake, verb, name string, o scenario.Options) (drover.Outcome, error)
	// Schedule is the scheduler; it looks at what that was asked and answers.
	Schedule(in scheduler.Input) (out scheduler.Output, broken string)
	// Applied looks at an entry's effect. before is nil for the first.
	Applied(before, after *store.Snapshot, now time.Time) (broken string)
	// Decide is called again and again once the faults are over: a person decides what waits for one.
	Decide(ctx context.Context, in *intake.Intake)
	// Unrest says what is not yet as it was asked for.
	Unrest(s *store.Snapshot) string
}

// alone is the Extra of a world that nothing is added to.
type alone struct{}

// Step implements Extra.
func (alone) Step(_ context.Context, _ *intake.Intake, verb, _ string, _ scenario.Options) (drover.Outcome, error) {
	return drover.Outcome{}, drover.Errorf(drover.Internal, "no such step: %s", verb)
}

// Schedule implements Extra.
func (alone) Schedule(in scheduler.Input) (scheduler.Output, string) {
	return scheduler.Schedule(in), ""
}

// Applied implements Extra.
func (alone) Applied(*store.Snapshot, *store.Snapshot, time.Time) string { return "" }

// Decide implements Extra.
func (alone) Decide(context.Context, *intake.Intake) {}

// Unrest implements Extra.
func (alone) Unrest(*store.Snapshot) string { return "" }
