package herd

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
)

// environment shows how one's pool stands, its runners, and what they are made from.
func (h *Pages) environment(w http.ResponseWriter, r *http.Request) error {
	return h.environmentPage(w, r, http.StatusOK, nil)
}

// environmentPage shows an environment; with what an action on it failed for, the page has that, too.
func (h *Pages) environmentPage(w http.ResponseWriter, r *http.Request, code int, failure error) error {
	key := r.PathValue("environment")
	var e execution.Environment
	var pool execution.PoolStatus
	var runners []execution.Runner
	err := h.Ask(r, api("environment", key), &e)
	if err == nil {
		err = h.Ask(r, api("environment", key, "pool"), &pool)
	}
	if err == nil {
		query := url.Values{"namespace": {execution.NamespaceOf(key)}, "environment": {key}}
		err = h.Ask(r, api("runners")+"?"+query.Encode(), &runners)
	}
	problem := html.Part{}
	if pool.LastError != "" {
		problem = warning("warn", execText.LastError, pool.LastError)
	}
	body := parts.Live("environment", []string{drover.TopicEnvironment, drover.TopicRunner}, 2, problem,
		parts.Facts(parts.Fact(execText.Warm, html.Text(fmt.Sprintf("%d / %d", pool.Warm, pool.Size))), parts.Fact(execText.Starting,
			html.Int(pool.Starting)),
			parts.Fact(execText.Queued, html.Int(pool.Queued)), parts.Fact(execText.Claimed, html.Int(pool.Claimed)),
			parts.Fact(execText.Waiting, html.Int(pool.Waiting))),
		parts.Facts(parts.Fact(execText.Image, html.Name(e.Image)), parts.Fact(execText.Driver, html.Text(e.Driver)),
			parts.Fact(execText.Memory, html.Text(fmt.Sprintf("%d / %d MiB", e.MemoryMB, e.MemoryMaxMB))),
			parts.Fact(execText.CPU, html.Text(fmt.Sprintf("%d MHz", e.CPU))), parts.Fact(execText.Network, html.Text(yesNo(e.Network))),
			parts.Fact(execText.IdleTimeout, html.Text(parts.Short(e.IdleTimeout)))),
		allExecutions("environment", key), html.El("h2", html.Text(execText.Runners)), runnerTable(runners))
	if err != nil {
		return h.Show(w, r, key, body, err)
	}
	return h.Write(w, r, code, key, html.Group(html.El("h1", html.Name(key)), told(r), h.problem(r, failure), h.poolForm(r, key, e.PoolSize),
		body, h.history(r, key)), "charts.js")
}

// runners lists the runners of all environments that the viewer may see, or of the one that the address names.
func (h *Pages) runners(w http.ResponseWriter, r *http.Request) error {
	all, err := h.allRunners(r)
	body := parts.Live("runners", []string{drover.TopicRunner}, 5, cut(len(all)), runnerTable(all[:min(len(all), most)]))
	return h.Show(w, r, execText.Runners, html.Group(told(r), body), err)
}

// allRunners are those that the viewer may see, the last claimed ones first and the warm ones last.
func (h *Pages) allRunners(r *http.Request) ([]execution.Runner, error) {
	query := url.Values{"namespace": {"*"}}
	if label := r.URL.Query()["label"]; len(label) > 0 {
		query["label"] = label
	}
	var all []execution.Runner
	err := h.Ask(r, api("runners")+"?"+query.Encode(), &all)
	slices.SortStableFunc(all, func(a, b execution.Runner) int { return b.ClaimedAt.Compare(a.ClaimedAt) })
	return all, err
}

func runnerTable(all []execution.Runner) html.Part {
	rows := make([]html.Part, 0, len(all))
	for _, one := range all {
		name := parts.Link(html.Path("ui", "allocations", one.AllocID), cmp.Or(one.ID, one.AllocID))
		if !one.ClaimedAt.IsZero() {
			name = parts.Link(html.Path("ui", "runners", one.ID), one.ID)
		}
		rows = append(rows, parts.Row(name, parts.Status(string(one.State)), parts.Link(html.Path("ui", "environments", environmentKey(&one)),
			environmentKey(&one)),
			parts.Link(html.Path("ui", "clients", one.NodeID), parts.ShortID(one.NodeID)), parts.Instant(one.ClaimedAt),
			html.Name(labels(one.Labels))))
	}
	return parts.Table(execText.Runners, execText.RunnerColumns, rows, execText.NoRunners)
}

func environmentKey(r *execution.Runner) string { return execution.Key(r.Namespace, r.Environment) }

func labels(all map[string]string) string {
	list := make([]string, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, name+"="+all[name])
	}
	return strings.Join(list, ", ")
}

// runner shows one with its executions.
func (h *Pages) runner(w http.ResponseWriter, r *http.Request) error {
	return h.runnerPage(w, r, http.StatusOK, nil)
}

// runnerPage shows a runner; with what an action on it failed for, the page has that, too.
func (h *Pages) runnerPage(w http.ResponseWriter, r *http.Request, code int, failure error) error {
	id := r.PathValue("runner")
	var one execution.Runner
	var list []execution.Execution
	err := h.Ask(r, api("runner", id), &one)
	if err == nil {
		err = h.Ask(r, api("runner", id, "executions"), &list)
	}
	newestFirst(list)
	body := parts.Live("runner", []string{drover.TopicRunner, drover.TopicExecution}, 5,
		parts.Facts(parts.Fact(execText.Status, parts.Status(string(one.State))),
			parts.Fact(execText.Environment, parts.Link(html.Path("ui", "environments", environmentKey(&one)), environmentKey(&one))),
			parts.Fact(execText.Node, parts.Link(html.Path("ui", "clients", one.NodeID), parts.ShortID(one.NodeID))),
			parts.Fact(execText.Allocation, parts.Link(html.Path("ui", "allocations", one.AllocID), parts.ShortID(one.AllocID))),
			parts.Fact(execText.ClaimedAt, parts.Instant(one.ClaimedAt)), parts.Fact(execText.IdleTimeout, html.Text(parts.Short(one.IdleTimeout))),
			parts.Fact(execText.Labels, html.Name(cmp.Or(labels(one.Labels), "–")))),
		html.El("h2", html.Text(execText.Executions)), allExecutions("runner", id), h.executionTable(list[:min(len(list), most)]))
	if err != nil {
		return h.Show(w, r, id, body, err)
	}
	return h.Write(w, r, code, id, html.Group(h.runnerHead(r, id), told(r), h.problem(r, failure), h.runnerForms(r, &one), body), "")
}

// most is how many rows a list shows.
const most = 50

// cut says that a list is longer than what is shown of it.
func cut(n int) html.Part {
	return html.If(n > most, html.El("p", html.Class("muted"), html.Text(fmt.Sprintf(execText.NewestOf, most, n))))
}

// newestFirst has what runs first, then what was started last.
func newestFirst(list []execution.Execution) {
	begun := func(x *execution.Execution) time.Time {
		if x.Receipt == nil {
			return time.Time{}
		}
		return x.Receipt.StartedAt
	}
	slices.SortStableFunc(list, func(a, b execution.Execution) int {
		if a.Running != b.Running {
			return cmp.Compare(map[bool]int{true: 0, false: 1}[a.Running], map[bool]int{true: 0, false: 1}[b.Running])
		}
		return cmp.Or(begun(&b).Compare(begun(&a)), cmp.Compare(a.ID, b.ID))
	})
}

// allExecutions leads to the list of those of a runner or an environment.
func allExecutions(of, name string) html.Part {
	return html.El("p", html.El("a", html.Href(html.Path("ui", "executions").With(of, name)), html.Text(execText.AllExecutions)))
}

func (h *Pages) executionTable(list []execution.Execution) html.Part {
	rows := make([]html.Part, 0, len(list))
	for i := range list {
		x := &list[i]
		began, wall, memory := html.Text("–"), "–", "–"
		if x.Receipt != nil {
			began, wall, memory = parts.Instant(x.Receipt.StartedAt), parts.Short(x.Receipt.Wall), parts.Size(x.Receipt.PeakMemory)
		}
		rows = append(rows, parts.Row(parts.Link(html.Path("ui", "executions", x.ID), x.ID), h.executionState(x), began, html.Text(wall),
			html.Text(memory),
			parts.Link(html.Path("ui", "runners", x.RunnerID), x.RunnerID), html.Name(strings.Join(x.Spec.Argv, " "))))
	}
	return parts.Table(execText.Executions, execText.ExecutionColumns, rows, execText.NoExecutions)
}

// executionState is how an execution does, or did, in words.
func (h *Pages) executionState(x *execution.Execution) html.Part {
	switch {
	case x.Receipt == nil:
		return html.El("span", html.Class("status prog"), html.Text(execText.Runs))
	case x.Receipt.Cause == execution.CauseExited && x.Receipt.ExitCode == 0:
		return html.El("span", html.Class("status ok"), html.Text(fmt.Sprintf(execText.Exited, 0)))
	case x.Receipt.Cause == execution.CauseExited:
		return html.El("span", html.Class("status bad"), html.Text(fmt.Sprintf(execText.Exited, x.Receipt.ExitCode)))
	}
	return html.El("span", html.Class("status bad"), html.Text(h.Cause(x.Receipt.Cause)))
}

func limitSize(mb int) string {
	if mb == 0 {
		return "–"
	}
	return parts.Size(int64(mb) << 20)
}

func yesNo(yes bool) string {
	if yes {
		return execText.Yes
	}
	return execText.No
}
