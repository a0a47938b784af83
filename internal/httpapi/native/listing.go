package native

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/policy"
)

// Headers of lists that are cut into pages.
const (
	nextHeader   = "X-Nomad-NextToken"
	totalHeader  = "Drover-Total"
	silentHeader = "Drover-Silent-Servers"
)

// defaultPage is how many executions a page has where nobody said.
const defaultPage = 100

// listOperations are those on the executions of all runners.
func (f *Face) listOperations() []operation {
	return []operation{{
		Route: httpapi.Route{
			Pattern: "GET /v1/executions", Where: httpapi.Leader, Handle: f.listAll,
			Need: httpapi.Filtered("the executions of namespaces whose runners the caller may read"),
		},
		summary: "List what runs, and what ended in the last 15 minutes, in all runners of all servers. The header " + totalHeader +
			" has how many there are on all pages, " + nextHeader + " where the next page begins, and " + silentHeader +
			" the servers that did not answer in time, whose executions are not in the list",
		query: []param{
			namespacesParam,
			{Name: "environment", Kind: "string", About: "only of this one"},
			{Name: "runner", Kind: "string", About: "only of this one, which may have ended"},
			{Name: "status", Kind: "strings", About: "running, ended, or why it ended, as in oom; repeat it for several"},
			{Name: "exit", Kind: "string", About: "the exit code of those that ended, or nonzero"},
			{Name: "since", Kind: "string", About: `those that still ran then: a time (RFC 3339), or how long ago, as in "5m"`},
			{Name: "until", Kind: "string", About: `those that had been started by then: a time (RFC 3339), or how long ago, as in "5m"`},
			{Name: "search", Kind: "string", About: "words, each of which must be in the id, the command, the runner or the environment"},
			{
				Name: "sort", Kind: "string",
				About: "one of " + strings.Join(execution.ListSorts(), ", ") + "; with - before it the other way round; default -started",
			},
			{Name: "per_page", Kind: "integer", About: "1 to 1000; default 100"},
			{Name: "next_token", Kind: "string", About: "where the page begins, of the page before it and of the same sort"},
		},
		out: []execution.Listed{},
	}}
}

// listAll answers GET /v1/executions.
func (f *Face) listAll(w http.ResponseWriter, r *http.Request) error {
	if f.Observations == nil {
		return drover.Errorf(drover.NotImplemented, "this agent is a node only: ask a server")
	}
	values := r.URL.Query()
	q, err := listQuery(values, f.Clock.Now())
	if err != nil {
		return err
	}
	asked := httpapi.AskedNamespace(r)
	if values.Get("namespace") == "" && execution.IsKey(q.Environment) { // which tells its namespace
		asked = execution.NamespaceOf(q.Environment)
	} else if values.Get("namespace") == "" && execution.IsKey(q.Runner) {
		asked = execution.NamespaceOf(q.Runner)
	}
	caller := httpapi.CallerOf(r.Context())
	page, err := f.Observations.SelectExecutions(r.Context(), q, func(namespace string) bool {
		return (asked == "*" || namespace == asked) && caller.Namespace(namespace, policy.ReadRunner)
	})
	if err != nil {
		return err
	}
	w.Header().Set(totalHeader, strconv.Itoa(page.Total))
	if page.Next != "" {
		w.Header().Set(nextHeader, page.Next)
	}
	if len(page.Silent) > 0 {
		w.Header().Set(silentHeader, strings.Join(page.Silent, ", "))
	}
	return httpapi.WriteJSON(w, r, http.StatusOK, page.Items)
}

// listQuery reads what is asked for. Errors: Invalid.
func listQuery(values url.Values, now time.Time) (q execution.ListQuery, err error) {
	q = execution.ListQuery{
		Environment: values.Get("environment"), Runner: values.Get("runner"), Statuses: values["status"], Exit: values.Get("exit"),
		Words: strings.Fields(values.Get("search")), Sort: values.Get("sort"), After: values.Get("next_token"), PerPage: defaultPage,
	}
	if q.Since, err = momentOf(values, "since", now); err != nil {
		return q, err
	}
	if q.Until, err = momentOf(values, "until", now); err != nil {
		return q, err
	}
	if text := values.Get("per_page"); text != "" {
		if q.PerPage, err = strconv.Atoi(text); err != nil {
			return q, drover.Errorf(drover.Invalid, "per_page: want a number from 1 to %d, got %q", execution.MaxListPage, text)
		}
	}
	return q, nil
}

// momentOf reads a time of the query, or how long ago it was; the zero time without one. Errors: Invalid.
func momentOf(values url.Values, name string, now time.Time) (time.Time, error) {
	text := values.Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, drover.Errorf(drover.Invalid, `%s: want a time as in "2026-01-31T10:00:00Z", or how long ago as in "5m", got %q`, name, text)
	}
	return at, nil
}
