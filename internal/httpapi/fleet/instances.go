package fleet

import (
	"net/http"
	"strconv"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/openapi"
)

// listInstances answers GET /v1/fleet/instances; pool and state select. An unknown state is no error: no machine
// has it.
func (f *Face) listInstances(w http.ResponseWriter, r *http.Request) error {
	list, err := f.Fleet.Instances(r.Context(), r.URL.Query().Get("pool"))
	if err != nil {
		return err
	}
	state := r.URL.Query().Get("state")
	out := []fleet.Instance{}
	for _, i := range list {
		if state == "" || i.State.String() == state {
			out = append(out, i)
		}
	}
	return answer(w, r, out, nil)
}

func (f *Face) explain(w http.ResponseWriter, r *http.Request) error {
	x, err := f.Fleet.Explain(r.Context(), r.PathValue("instance"))
	return answer(w, r, x, err)
}

// timelineOperation is the route of what machines did.
func (f *Face) timelineOperation(pool openapi.Param) operation {
	return operation{openapi.Operation{
		Pattern: "GET /v1/fleet/timeline",
		Summary: "What machines did: when each was asked for, booted, worked, was drained and went, why it was bought, and why it is as it is",
		Query: []openapi.Param{
			pool,
			{Name: "since", Kind: "string", About: `how far back, as in "6h"; 1m to 720h, default 24h`},
			{Name: "limit", Kind: "integer", About: "those that were asked for last, so many; 1 to 1000, default 100"},
		},
		Out: fleet.Timeline{}, Status: http.StatusOK,
	}, f.timeline}
}

// timeline answers GET /v1/fleet/timeline.
func (f *Face) timeline(w http.ResponseWriter, r *http.Request) error {
	q, since, most := r.URL.Query(), 24*time.Hour, 100
	var err error
	if text := q.Get("since"); text != "" {
		if since, err = time.ParseDuration(text); err != nil {
			return drover.Errorf(drover.Invalid, `since: want a duration as in "6h", got %q`, text)
		}
	}
	if text := q.Get("limit"); text != "" {
		if most, err = strconv.Atoi(text); err != nil {
			return drover.Errorf(drover.Invalid, "limit: want a number, got %q", text)
		}
	}
	t, err := f.Fleet.Timeline(r.Context(), q.Get("pool"), since, most)
	return answer(w, r, t, err)
}

// operate does what an operator wants of a machine: hold, drain, run or kill.
func (f *Face) operate(w http.ResponseWriter, r *http.Request) error {
	var body Reason
	if err := httpapi.DecodeOptionalJSON(r, &body); err != nil {
		return err
	}
	if body.Reason == "" {
		body.Reason = r.URL.Query().Get("reason")
	}
	if err := f.steer(r, r.PathValue("instance"), r.PathValue("word"), body.Reason); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// interrupt takes a notice of the cloud's: work is moved, and replaced now.
func (f *Face) interrupt(w http.ResponseWriter, r *http.Request) error {
	var body Notice
	if err := httpapi.DecodeOptionalJSON(r, &body); err != nil {
		return err
	}
	if err := f.Fleet.Interrupt(r.Context(), r.PathValue("instance"), body.At); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// steer tells a machine one word. hold, drain and run last until the next word; kill destroys it now. Errors:
// NotFound for other words, because the word is a part of the path.
func (f *Face) steer(r *http.Request, instance, word, why string) error {
	switch word {
	case "hold", "drain", "run":
		return f.Fleet.Behave(r.Context(), instance, fleet.IdleBehavior(word), why)
	case "kill":
		return f.Fleet.Kill(r.Context(), instance, why)
	}
	return drover.Errorf(drover.NotFound, "%q is nothing that a machine can be told: hold, drain, run or kill", word)
}

func (f *Face) plan(w http.ResponseWriter, r *http.Request) error {
	list, err := f.Fleet.Plan(r.Context(), r.URL.Query().Get("pool"))
	return answer(w, r, list, err)
}

func (f *Face) waiting(w http.ResponseWriter, r *http.Request) error {
	list, err := f.Fleet.Waiting(r.Context(), r.URL.Query().Get("pool"))
	return answer(w, r, list, err)
}

// audit answers with the newest entries, at most 10,000, whatever the limit.
func (f *Face) audit(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	most, err := httpapi.UintParam(r, "limit", 200)
	if err != nil {
		return err
	}
	list, err := f.Fleet.Audit(r.Context(), q.Get("pool"), q.Get("instance"), int(min(most, 10_000)))
	return answer(w, r, list, err)
}

func (f *Face) costs(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	report, err := f.Fleet.Costs(r.Context(), q.Get("from"), q.Get("by"))
	return answer(w, r, report, err)
}
