package fleet

import (
	"net/http"
	"strconv"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/httpapi"
)

func (f *Face) listPools(w http.ResponseWriter, r *http.Request) error {
	list, err := f.Fleet.Pools(r.Context())
	return answer(w, r, list, err)
}

func (f *Face) getPool(w http.ResponseWriter, r *http.Request) error {
	p, err := f.Fleet.Pool(r.Context(), r.PathValue("pool"))
	return answer(w, r, p, err)
}

// putPool creates or replaces a pool. Its machines are untouched by the change itself.
func (f *Face) putPool(w http.ResponseWriter, r *http.Request) error {
	var policy fleet.Policy
	if err := httpapi.DecodeStrictJSON(r, &policy); err != nil {
		return err
	}
	name := r.PathValue("pool")
	if policy.Name == "" {
		policy.Name = name
	}
	if policy.Name != name {
		return drover.Errorf(drover.Invalid, "Name: is %q, but the path says %q", policy.Name, name)
	}
	put := func() error { return f.Fleet.PutPool(r.Context(), &policy) }
	if text := r.URL.Query().Get("was"); text != "" {
		was, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return drover.Errorf(drover.Invalid, "was: want the ModifyIndex of the pool as you read it, got %q", text)
		}
		put = func() error { return f.Fleet.ReplacePool(r.Context(), &policy, was) }
	}
	if err := put(); err != nil {
		return err
	}
	return f.getPool(w, r)
}

// deletePool answers 204 at once. The pool itself is there until its last machine is gone.
func (f *Face) deletePool(w http.ResponseWriter, r *http.Request) error {
	if err := f.Fleet.DeletePool(r.Context(), r.PathValue("pool")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// pausePool replaces the pool's pause as a whole, and answers with the pool as it then stands.
func (f *Face) pausePool(w http.ResponseWriter, r *http.Request) error {
	var pause fleet.Pause
	if err := httpapi.DecodeStrictJSON(r, &pause); err != nil {
		return err
	}
	if err := f.Fleet.Pause(r.Context(), r.PathValue("pool"), pause); err != nil {
		return err
	}
	return f.getPool(w, r)
}

// apply makes the pools those of the body, or of this server's configuration.
func (f *Face) apply(w http.ResponseWriter, r *http.Request) error {
	var ask fleet.Application
	if err := httpapi.DecodeStrictJSON(r, &ask); err != nil {
		return err
	}
	done, err := f.Fleet.Apply(r.Context(), ask)
	return answer(w, r, done, err)
}

// differences says what apply would change.
func (f *Face) differences(w http.ResponseWriter, r *http.Request) error {
	would, err := f.Fleet.Apply(r.Context(), fleet.Application{Preview: true})
	return answer(w, r, would, err)
}

// answer writes v, with an empty list for none.
func answer(w http.ResponseWriter, r *http.Request, v any, err error) error {
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, r, http.StatusOK, v)
}
