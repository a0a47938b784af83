package command

import "github.com/drover-project/drover"

// UpdateEvals stores evaluations, new or changed. CreateIndex and ModifyIndex are the FSM's; times are the caller's.
// Result: nil.
type UpdateEvals struct {
	Evals []*drover.Evaluation
}

// DeleteEvals removes evaluations; unknown ids are ignored. Result: nil.
type DeleteEvals struct {
	IDs []string
}

// Kind implements Command.
func (*UpdateEvals) Kind() Kind { return KindUpdateEvals }

// Kind implements Command.
func (*DeleteEvals) Kind() Kind { return KindDeleteEvals }
