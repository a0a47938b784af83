package native

import (
	"net/http"

	"drover"
	"drover/internal/httpapi"
)

func (f *Face) listEnvironments(w http.ResponseWriter, r *http.Request) error {
	envs, err := f.Runners.Environments(r.Context())
	return answer(w, r, http.StatusOK, envs, err)
}

func (f *Face) getEnvironment(w http.ResponseWriter, r *http.Request) error {
	env, err := f.Runners.Environment(r.Context(), r.PathValue("environment"))
	return answer(w, r, http.StatusOK, env, err)
}

func (f *Face) putEnvironment(w http.ResponseWriter, r *http.Request) error {
	var env drover.Environment
	if err := httpapi.DecodeJSON(r, &env); err != nil {
		return err
	}
	id := r.PathValue("environment")
	if env.ID != "" && env.ID != id {
		return drover.Errorf(drover.Invalid, "id %q is not that of the path, %q", env.ID, id)
	}
	env.ID = id
	created, err := f.Runners.PutEnvironment(r.Context(), env)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	env, err = f.Runners.Environment(r.Context(), id)
	return answer(w, r, status, env, err)
}

func (f *Face) deleteEnvironment(w http.ResponseWriter, r *http.Request) error {
	return done(w, f.Runners.DeleteEnvironment(r.Context(), r.PathValue("environment")))
}

func (f *Face) pool(w http.ResponseWriter, r *http.Request) error {
	status, err := f.Runners.PoolStatus(r.Context(), r.PathValue("environment"))
	return answer(w, r, http.StatusOK, status, err)
}

// answer writes v, unless there is an error.
func answer(w http.ResponseWriter, r *http.Request, status int, v any, err error) error {
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, r, status, v)
}

// done answers without a body, unless there is an error.
func done(w http.ResponseWriter, err error) error {
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
