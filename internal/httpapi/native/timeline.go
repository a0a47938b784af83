package native

import (
	"net/http"

	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi"
)

// timelineOperations are those on when output came.
func (f *Face) timelineOperations() []operation {
	return []operation{{
		Route: httpapi.Route{
			Pattern: "GET /v1/execution/{execution}/timeline", Where: ofExecution, Need: controls, Handle: f.controlling(f.timeline),
		},
		summary: "When an execution's output came, as long as the output is kept",
		out:     execution.Timeline{},
	}}
}

// timeline answers GET /v1/execution/ID/timeline.
func (f *Face) timeline(w http.ResponseWriter, r *http.Request) error {
	t, err := f.Observations.Timeline(r.Context(), r.PathValue("execution"))
	return answer(w, r, http.StatusOK, t, err)
}

// reader attaches to the execution that the path names; with observe in the query so that the program never waits for this. Errors:
// Invalid, those of Attach.
func (f *Face) reader(r *http.Request, from execution.Offsets) (execution.Session, error) {
	observe, err := flag(r, "observe")
	switch {
	case err != nil:
		return nil, err
	case observe:
		return f.Observations.Observe(r.Context(), r.PathValue("execution"), from)
	}
	return f.Executions.Attach(r.Context(), r.PathValue("execution"), from)
}
