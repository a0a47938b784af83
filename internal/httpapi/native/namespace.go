package native

import (
	"net/http"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/policy"
)

// environmentKey is the key of the environment that the path names: by its key, or by its id in the namespace that the query asks for.
func environmentKey(r *http.Request) string {
	id := r.PathValue("environment")
	if execution.IsKey(id) {
		return execution.Key(execution.SplitKey(id))
	}
	return execution.Key(httpapi.AskedNamespace(r), id)
}

// ofEnvironment is the namespace of the environment that the path names.
func ofEnvironment(r *http.Request) string {
	if id := r.PathValue("environment"); execution.IsKey(id) {
		return execution.NamespaceOf(id)
	}
	return httpapi.AskedNamespace(r)
}

// claimedKey is the key of the environment that the body of a claim names.
func claimedKey(r *http.Request) (string, error) {
	id, err := httpapi.BodyKey("environment")(r)
	if err != nil || id == "" || execution.IsKey(id) {
		return id, err
	}
	return execution.Key(httpapi.AskedNamespace(r), id), nil
}

// claimIn completes what the body of a claim says of the namespace. Rights were decided in that of the query. Errors: Invalid.
func claimIn(r *http.Request, namespace, environment *string) error {
	asked := httpapi.AskedNamespace(r)
	if asked == "*" {
		return drover.Errorf(drover.Invalid, "namespace: a runner is claimed in one namespace, not in all")
	}
	var ofKey string
	if execution.IsKey(*environment) {
		ofKey, *environment = execution.SplitKey(*environment)
	}
	for _, named := range []string{ofKey, *namespace} {
		if named != "" && named != asked {
			return drover.Errorf(drover.Invalid, "namespace: the body names %q, the query %q: say ?namespace=%s", named, asked, named)
		}
	}
	*namespace, _ = execution.SplitKey(execution.Key(asked, *environment))
	return nil
}

// controlling has the handler called for who may control the execution that the path names.
func (f *Face) controlling(handle httpapi.Handle) httpapi.Handle {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := f.allowed(r, policy.Execute); err != nil {
			return err
		}
		return handle(w, r)
	}
}

// allowed decides about the execution that the path names, in the namespace of its runner. Errors: NotFound, also for who lacks the
// capability there: to them it is as one that there is not.
func (f *Face) allowed(r *http.Request, c policy.Capability) error {
	id := r.PathValue("execution")
	x, err := f.Executions.Info(r.Context(), id)
	if err == nil && httpapi.Allow(r.Context(), execution.NamespaceOf(x.RunnerID), c) != nil {
		err = execution.ErrUnknown(id)
	}
	return err
}
