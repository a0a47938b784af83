package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/view"
)

// roomFor waits until there is room for what the evaluation could not place, for as long as within at most, and says what is still in the
// way when that changes. It returns the evaluation that placed the rest, or the last one, and unplaced as before. Errors: the API's; a
// plain one if the evaluation failed, or was canceled without another in its place.
func (f *follower) roomFor(ctx context.Context, e *drover.Evaluation, within time.Duration) (*drover.Evaluation, bool, error) {
	limit, cancel := f.app.Clock.WithTimeout(ctx, within)
	defer cancel()
	f.evals[e.ID] = true
	unplaced, told, said := true, reasons(e), false
	for unplaced {
		next, err := f.successor(limit, e)
		if next != nil && !said {
			said = true
			fmt.Fprintf(f.app.Out, "    Waiting for room for %s at most.\n", within)
		}
		if next != nil && err == nil {
			next, err = f.unblocked(limit, next, &told)
		}
		switch {
		case limit.Err() != nil && ctx.Err() == nil && err != nil:
			fmt.Fprintf(f.app.Out, "==> There was no room within %s; the job goes on waiting.\n", within)
			return e, true, nil
		case err != nil:
			return nil, true, err
		case next == nil:
			return e, true, nil
		}
		e, unplaced = next, len(next.FailedTGAllocs) > 0
		f.evals[e.ID] = true
		if e.Status == drover.EvalFailed {
			return nil, true, fmt.Errorf("the evaluation is %s: %s", e.Status, e.StatusDescription)
		}
	}
	fmt.Fprintln(f.app.Out, "==> There is room now.")
	return e, false, nil
}

// successor returns the evaluation that places what this one did not, nil if nothing waits for room. It is the blocked one that
// it left, or the job's newest if another cause was looked at first. Errors: the API's.
func (f *follower) successor(ctx context.Context, e *drover.Evaluation) (*drover.Evaluation, error) {
	if e.Status == drover.EvalBlocked {
		return e, nil
	}
	if e.BlockedEval != "" {
		var next drover.Evaluation
		_, err := f.api.Get(ctx, "/v1/evaluation/"+e.BlockedEval, f.api.Anywhere(), &next)
		if err != nil || next.Status != drover.EvalCanceled {
			return &next, err
		}
	}
	var all []*drover.Evaluation
	if _, err := f.api.Get(ctx, api.JobPath(e.JobID, "/evaluations"), api.InNamespace(e.Namespace), &all); err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(x *drover.Evaluation) bool {
		return x.Status == drover.EvalCanceled || x.CreateIndex < e.CreateIndex || x.ID == e.ID || f.evals[x.ID] // looked at before
	})
	if len(all) == 0 {
		return nil, nil
	}
	return slices.MaxFunc(all, func(x, y *drover.Evaluation) int { return int(x.CreateIndex) - int(y.CreateIndex) }), nil
}

// unblocked waits until the evaluation is at its end, and returns it, or what came in its place if it was canceled. Errors: the API's; a
// plain one if nothing came.
func (f *follower) unblocked(ctx context.Context, e *drover.Evaluation, told *string) (*drover.Evaluation, error) {
	var index uint64
	for {
		var now drover.Evaluation
		next, err := f.api.Get(ctx, "/v1/evaluation/"+e.ID, api.Blocking(f.api.Anywhere(), index), &now)
		if err != nil {
			return nil, err
		}
		index = next
		if why := reasons(&now); now.Status == drover.EvalBlocked && why != "" && why != *told {
			*told = why
			fmt.Fprint(f.app.Out, "==> Still not everything can be placed:\n", why)
		}
		if now.Status == drover.EvalCanceled {
			in, err := f.successor(ctx, &now)
			if err == nil && in == nil {
				err = errors.New("the evaluation that waited for room was canceled: 'drover job status " + now.JobID + "' tells more")
			}
			if err != nil {
				return nil, err
			}
			e, index = in, 0
			continue
		}
		if now.Terminal() {
			return &now, nil
		}
	}
}

// reasons are why an evaluation could not place everything, as they are printed.
func reasons(e *drover.Evaluation) string {
	var b strings.Builder
	view.ExplainUnplaced(&b, "    ", e.FailedTGAllocs)
	return b.String()
}
