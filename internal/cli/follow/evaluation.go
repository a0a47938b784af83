package follow

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/cli/view"
)

// follower prints what becomes of one evaluation and its allocations. It belongs to one goroutine.
type follower struct {
	app *term.App
	api *api.Client
	// Shortens ids, unless -verbose is given.
	id   func(string) string
	seen map[string]string // last told of an allocation, and of its tasks by ALLOCATION/TASK

	toEnd bool            // until the allocations ended
	evals map[string]bool // the allocations of which are followed
}

// Evaluation waits until what the evaluation asked for was placed and started, or says why not; f.Wait waits for its
// end, and for room until then. Errors: the API's; *term.ExitError with 4 if not all was placed; a plain error if the evaluation or an
// allocation failed.
func Evaluation(ctx context.Context, app *term.App, c *api.Client, evalID string, f Options) error {
	o := term.Output{Verbose: f.Verbose}
	if f.detach {
		_, err := fmt.Fprintf(app.Out, "Evaluation ID: %s\n", evalID)
		return err
	}
	w := &follower{app: app, api: c, id: o.ID, seen: map[string]string{}, evals: map[string]bool{}}
	eval, err := w.placed(ctx, evalID)
	if err != nil {
		return err
	}
	unplaced, err := w.outcome(eval)
	if err != nil {
		return err
	}
	if f.Wait {
		if err := w.hopeful(ctx, eval); err != nil {
			return err
		}
		d, err := w.deployment(ctx, eval)
		if err != nil {
			return err
		}
		if d != nil {
			return Deployment(ctx, app, c, d)
		}
		w.toEnd = eval.Type == drover.JobTypeBatch || eval.Type == drover.JobTypeSysBatch
		if unplaced && f.PlaceWithin > 0 {
			if eval, unplaced, err = w.roomFor(ctx, eval, f.PlaceWithin); err != nil {
				return err
			}
		}
	}
	// Garbage collection places nothing.
	if eval.Type != drover.JobTypeCore {
		if err := w.started(ctx, eval); err != nil {
			return err
		}
	}
	if unplaced {
		return &term.ExitError{Code: term.ExitUnplaced}
	}
	return nil
}

// placed waits for the end of the evaluation, and returns it. A blocked one is an end too: it waits for room, perhaps
// for ever.
func (f *follower) placed(ctx context.Context, id string) (*drover.Evaluation, error) {
	var index uint64
	told := false
	for {
		var e drover.Evaluation
		next, err := f.api.Get(ctx, "/v1/evaluation/"+id, api.Blocking(f.api.Anywhere(), index), &e)
		if err != nil {
			return nil, err
		}
		index = next
		if !told {
			told = true
			fmt.Fprintf(f.app.Out, "==> Evaluation %s of job %q (%s)\n", f.id(e.ID), e.JobID, e.TriggeredBy)
		}
		if e.Terminal() || e.Status == drover.EvalBlocked {
			return &e, nil
		}
	}
}

// outcome prints how the evaluation ended, with the reasons if not all could be placed, which is unplaced. Errors: a
// plain one if it failed or was canceled.
func (f *follower) outcome(e *drover.Evaluation) (unplaced bool, err error) {
	w := f.app.Out
	switch {
	case e.Status == drover.EvalFailed || e.Status == drover.EvalCanceled:
		return false, fmt.Errorf("the evaluation is %s: %s", e.Status, e.StatusDescription)
	case len(e.FailedTGAllocs) == 0:
		return false, nil
	}
	fmt.Fprintln(w, "==> Not everything could be placed:")
	view.ExplainUnplaced(w, "    ", e.FailedTGAllocs)
	if e.BlockedEval != "" {
		fmt.Fprintf(w, "    Evaluation %s waits for room to place the rest.\n", f.id(e.BlockedEval))
	}
	return true, nil
}

// deployment returns the one that rolls out what the evaluation is about, nil if none does. The scheduler may have
// made it after the evaluation was read, so the job's newest is asked for.
func (f *follower) deployment(ctx context.Context, e *drover.Evaluation) (*drover.Deployment, error) {
	var newest *drover.Deployment
	if _, err := f.api.Get(ctx, api.JobPath(e.JobID, "/deployment"), api.InNamespace(e.Namespace), &newest); err != nil {
		return nil, err
	}
	if newest != nil && !newest.Active() && newest.ID != e.DeploymentID {
		newest = nil // it ended before
	}
	return newest, nil
}

// started waits until no allocation that the evaluation is about is pending, and tells each change: of those that it
// placed, or, to their end, of all that run.
func (f *follower) started(ctx context.Context, e *drover.Evaluation) error {
	var index uint64
	f.evals[e.ID] = true
	// What was followed once stays followed: a later evaluation may take the allocation over, which changes its EvalID.
	mine := map[string]bool{}
	for {
		var list []*drover.AllocationListStub
		next, err := f.api.Get(ctx, api.JobPath(e.JobID, "/allocations"), api.Blocking(api.InNamespace(e.Namespace), index), &list)
		if err != nil {
			return err
		}
		index = next
		list = slices.DeleteFunc(list, func(a *drover.AllocationListStub) bool {
			mine[a.ID] = mine[a.ID] || f.evals[a.EvalID] || f.toEnd && f.waitsFor(a)
			return !mine[a.ID]
		})
		slices.SortFunc(list, func(x, y *drover.AllocationListStub) int { return view.CompareNames(x.Name, y.Name) })
		pending := 0
		for _, a := range list {
			f.tell(a)
			if f.waitsFor(a) {
				pending++
			}
		}
		if pending == 0 {
			return f.ended(e, list)
		}
	}
}

// waitsFor tells whether an allocation has yet to start, or to end.
func (f *follower) waitsFor(a *drover.AllocationListStub) bool {
	switch a.ClientStatus {
	case drover.AllocClientPending:
		return a.DesiredStatus == drover.AllocDesiredRun
	case drover.AllocClientRunning:
		return f.toEnd
	}
	return false
}

// tell prints an allocation's state when it is new.
func (f *follower) tell(a *drover.AllocationListStub) {
	if f.seen[a.ID] == a.ClientStatus {
		f.tellProgress(a)
		return
	}
	f.seen[a.ID] = a.ClientStatus
	fmt.Fprintf(f.app.Out, "    Allocation %s (%s) on node %s: %s\n", f.id(a.ID), a.Name, a.NodeName, a.ClientStatus)
	if a.ClientStatus == drover.AllocClientFailed {
		// The fault of each task, since a group fails as a whole by one of them.
		for name, s := range a.TaskStates {
			if event := lastFault(s); event != "" {
				fmt.Fprintf(f.app.Out, "      task %s: %s\n", name, term.OneLine(event))
			}
		}
	}
	f.tellProgress(a)
}

// tellProgress prints what tasks that have not started do when it is new: how much of an image or an artifact is there, or for what
// a template waits.
func (f *follower) tellProgress(a *drover.AllocationListStub) {
	for _, name := range slices.Sorted(maps.Keys(a.TaskStates)) {
		s := a.TaskStates[name]
		if s.State != drover.TaskStatePending || len(s.Events) == 0 {
			continue
		}
		switch e := s.Events[len(s.Events)-1]; e.Type {
		case drover.TaskDriverMessage, drover.TaskDownloading, drover.TaskTemplate:
			if task := a.ID + "/" + name; f.seen[task] != e.DisplayMessage {
				f.seen[task] = e.DisplayMessage
				fmt.Fprintf(f.app.Out, "      task %s: %s\n", name, term.OneLine(e.DisplayMessage))
			}
		}
	}
}

// lastFault returns the last event of a task that tells what went wrong, as "Type: message"; "" if there is none.
// Later events, such as "Not Restarting", only tell what came of it.
func lastFault(s *drover.TaskState) string {
	for _, e := range slices.Backward(s.Events) {
		switch e.Type {
		case drover.TaskDriverFailure, drover.TaskSetupFailure, drover.TaskTerminated, drover.TaskHookFailed,
			drover.TaskDownloadFailed, drover.TaskFailedValidation, drover.TaskRestoreFailed:
			return e.Type + ": " + e.DisplayMessage
		}
	}
	return ""
}

// ended closes with a summary. Errors: a plain one, by which the command exits with 1, if an allocation failed.
func (f *follower) ended(e *drover.Evaluation, list []*drover.AllocationListStub) error {
	failed := 0
	for _, a := range list {
		if a.ClientStatus == drover.AllocClientFailed {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d allocations failed: 'drover alloc status ID' and 'drover alloc logs ID' tell more", failed, len(list))
	}
	fmt.Fprintf(f.app.Out, "==> Evaluation %s is %s\n", f.id(e.ID), e.Status)
	if e.DeploymentID != "" {
		fmt.Fprintf(f.app.Out, "    Deployment %s goes on: 'drover deployment status %[1]s'\n", f.id(e.DeploymentID))
	}
	return nil
}
