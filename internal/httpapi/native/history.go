package native

import (
	"cmp"
	"net/http"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/policy"
)

// historyOperations are those on how things were.
func (f *Face) historyOperations() []operation {
	return []operation{{
		Route: httpapi.Route{
			Pattern: "GET /v1/metrics/history", Where: httpapi.Leader, Handle: f.history,
			Need: httpapi.Filtered("the pools of namespaces whose runners the caller may read"),
		},
		summary: "How pools of environments stood in the last six hours at most, and how long claims, starts and first outputs took, " +
			"as the leader saw it",
		query: []param{
			{Name: "since", Kind: "string", About: `how far back, as in "30m"; from 10s to 6h, default 1h`},
			{Name: "step", Kind: "string", About: `of the answer, as in "1m"; a multiple of 10s, of since at most; default one of 120 steps`},
			{Name: "environment", Kind: "string", About: "only of this one"},
			namespacesParam,
		},
		out: execution.History{},
	}}
}

// history answers GET /v1/metrics/history.
func (f *Face) history(w http.ResponseWriter, r *http.Request) error {
	if f.History == nil {
		return drover.Errorf(drover.NotImplemented, "this agent is a node only: ask a server")
	}
	q := r.URL.Query()
	durations := [2]time.Duration{time.Hour, 0}
	for i, name := range []string{"since", "step"} {
		if text := q.Get(name); text != "" {
			d, err := time.ParseDuration(text)
			if err != nil {
				return drover.Errorf(drover.Invalid, `%s: want a duration as in "30m", got %q`, name, text)
			}
			durations[i] = d
		}
	}
	namespace, only := cmp.Or(q.Get("namespace"), "default"), q.Get("environment")
	if only != "" && !execution.IsKey(only) && namespace != "*" {
		only = execution.Key(namespace, only)
	}
	caller := httpapi.CallerOf(r.Context())
	h, err := f.History.Read(durations[0], durations[1], func(key string) bool {
		of := execution.NamespaceOf(key)
		_, name := execution.SplitKey(key)
		switch {
		case only != "" && key != only && (namespace != "*" || name != only),
			only == "" && namespace != "*" && of != namespace:
			return false
		}
		return caller.Namespace(of, policy.ReadRunner)
	})
	return answer(w, r, http.StatusOK, h, err)
}
