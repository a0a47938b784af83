package native

import (
	"net/http"
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/policy"
)

// environmentOperations are those on environments and their pools.
func (f *Face) environmentOperations() []operation {
	return []operation{
		{
			Route:   httpapi.Route{Pattern: "GET /v1/environments", Where: httpapi.Reads, Need: lists, Handle: f.listEnvironments},
			summary: "List environments",
			query:   []param{namespacesParam},
			out:     []execution.Environment{},
		},
		{
			Route: httpapi.Route{
				Pattern: "GET /v1/environment/{environment}", Where: httpapi.Reads, Need: readsEnvironment,
				Handle: f.getEnvironment,
			},
			summary: "Read an environment",
			query:   []param{namespaceParam},
			out:     execution.Environment{},
		},
		{
			Route: httpapi.Route{
				Pattern: "PUT /v1/environment/{environment}", Where: httpapi.Leader, Need: environments.Knowing(), Handle: f.putEnvironment,
			},
			summary: "Create (201) or replace (200) an environment; with wait it is answered when the pool is full, or with 202, " +
				"and the reason in the header Drover-Pool-Error",
			query: []param{namespaceParam, fillParam},
			in:    execution.Environment{}, out: execution.Environment{}, status: []int{http.StatusOK, http.StatusCreated, http.StatusAccepted},
		},
		{
			Route: httpapi.Route{
				Pattern: "POST /v1/environment/{environment}/size", Where: httpapi.Leader, Need: environments.Knowing(), Handle: f.resizePool,
			},
			summary: "Set how many runners an environment keeps warm, and nothing else of it; with was only if that is the size by now, " +
				"else it is a conflict that says the present one",
			query: []param{namespaceParam},
			in:    execution.PoolResize{}, out: execution.Environment{},
		},
		{
			Route: httpapi.Route{
				Pattern: "DELETE /v1/environment/{environment}", Where: httpapi.Leader, Need: environments,
				Handle: f.deleteEnvironment,
			},
			summary: "Delete an environment and its runners",
			query:   []param{namespaceParam},
		},
		{
			Route:   httpapi.Route{Pattern: "GET /v1/environment/{environment}/pool", Where: httpapi.Leader, Need: readsEnvironment, Handle: f.pool},
			summary: "How the pool of warm runners stands",
			query:   []param{namespaceParam, fillParam},
			out:     execution.PoolStatus{},
		},
	}
}

// listEnvironments answers GET /v1/environments with those that the caller may read; without any, with an empty list.
func (f *Face) listEnvironments(w http.ResponseWriter, r *http.Request) error {
	envs, err := f.Environments.Environments(r.Context(), httpapi.AskedNamespace(r))
	caller := httpapi.CallerOf(r.Context())
	envs = slices.DeleteFunc(envs, func(e execution.Environment) bool {
		return !caller.Namespace(execution.NamespaceOf(e.Key()), policy.ReadRunner)
	})
	return answer(w, r, http.StatusOK, envs, err)
}

func (f *Face) getEnvironment(w http.ResponseWriter, r *http.Request) error {
	env, err := f.Environments.Environment(r.Context(), environmentKey(r))
	return answer(w, r, http.StatusOK, env, err)
}

// putEnvironment answers PUT /v1/environment/ID. The body's id may be left out, but must otherwise be the path's. A
// pool that does not fill in time is no error: the environment is stored, so that the answer is 202. The header
// Drover-Pool-Error then has the last failure of a runner, which may be empty. The body is always the environment
// as stored, with its defaults.
func (f *Face) putEnvironment(w http.ResponseWriter, r *http.Request) error {
	var env execution.Environment
	if err := httpapi.DecodeStrictJSON(r, &env); err != nil {
		return err
	}
	key := environmentKey(r)
	namespace, id := execution.SplitKey(key)
	if env.ID != "" && env.ID != id && env.ID != key {
		return drover.Errorf(drover.Invalid, "id %q is not that of the path, %q", env.ID, id)
	}
	if named := execution.Key(env.Namespace, id); env.Namespace != "" && named != key {
		return drover.Errorf(drover.Invalid, "namespace: the body names %q, the path or the query %q", env.Namespace, execution.NamespaceOf(key))
	}
	env.Namespace, env.ID = namespace, id
	wait, err := f.waitOf(r)
	if err != nil {
		return err
	}
	created, err := f.Environments.PutEnvironment(r.Context(), env)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	if wait > 0 {
		pool, full, err := f.Environments.AwaitPool(r.Context(), key, wait)
		if err != nil {
			return err
		}
		if !full {
			status = http.StatusAccepted
			w.Header().Set("Drover-Pool-Error", oneLine(pool.LastError))
		}
	}
	env, err = f.Environments.Environment(r.Context(), key)
	return answer(w, r, status, env, err)
}

// resizePool answers POST /v1/environment/ID/size. Errors: Invalid, NotFound, Conflict.
func (f *Face) resizePool(w http.ResponseWriter, r *http.Request) error {
	var body execution.PoolResize
	if err := httpapi.DecodeStrictJSON(r, &body); err != nil {
		return err
	}
	if body.Size == nil {
		return drover.Errorf(drover.Invalid, "size: say how many runners to keep warm")
	}
	env, err := f.Environments.ResizePool(r.Context(), environmentKey(r), *body.Size, body.Was)
	return answer(w, r, http.StatusOK, env, err)
}

// deleteEnvironment answers DELETE /v1/environment/ID with 204. Errors: NotFound.
func (f *Face) deleteEnvironment(w http.ResponseWriter, r *http.Request) error {
	return done(w, f.Environments.DeleteEnvironment(r.Context(), environmentKey(r)))
}

// pool answers GET /v1/environment/ID/pool. With wait it answers when the pool is full, a runner failed or the time
// is over, always with 200: the status itself tells which.
func (f *Face) pool(w http.ResponseWriter, r *http.Request) error {
	key := environmentKey(r)
	wait, err := f.waitOf(r)
	if err != nil {
		return err
	}
	if wait > 0 {
		status, _, err := f.Environments.AwaitPool(r.Context(), key, wait)
		return answer(w, r, http.StatusOK, status, err)
	}
	status, err := f.Environments.PoolStatus(r.Context(), key)
	return answer(w, r, http.StatusOK, status, err)
}

// oneLine makes a text fit for a header.
func oneLine(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return ' '
		}
		return c
	}, text)
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
