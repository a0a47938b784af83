package web

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/usage"
)

// readAllocation asks for the allocation that a page's address names. Errors: those of ask.
func (f *Face) readAllocation(r *http.Request) (*drover.Allocation, error) {
	var a drover.Allocation
	err := f.ask(r.Context(), r, http.MethodGet, apiPath("allocation", r.PathValue("allocation")), nil, &a)
	a.ID = cmp.Or(a.ID, r.PathValue("allocation"))
	return &a, err
}

func (f *Face) allocation(w http.ResponseWriter, r *http.Request) error {
	return f.allocationPage(w, r, http.StatusOK, nil)
}

// allocationPage shows an allocation; with what an action on it failed for, the page has that, too.
func (f *Face) allocationPage(w http.ResponseWriter, r *http.Request, code int, failure error) error {
	a, err := f.readAllocation(r)
	if err != nil {
		return f.show(w, r, a.ID, html.Part{}, err)
	}
	problem := html.Part{}
	if failure != nil {
		problem = failed(r, failure)
	}
	about := []string{drover.TopicAllocation}
	body := html.Group(f.allocHead(r, a), problem, done(r, allocText.Actions),
		livePart("state", about, 0, html.El("p", html.Text(allocText.State[a.DesiredStatus+" "+a.ClientStatus]), html.Text(" "),
			html.Name(cmp.Or(a.ClientDescription, a.DesiredDescription))), parts.Failure(a), allocFacts(a)),
		livePart("buttons", about, 0, f.allocButtons(r, a)),
		livePart("tasks", about, 0, html.El("h2", html.Text(allocText.Tasks)), f.taskTable(r, a),
			html.El("h2", html.Text(allocText.Timeline)), timeline(a)),
		livePart("resources", about, 2, html.El("h2", html.Text(allocText.Resources)), f.resources(r, a)),
		livePart("place", about, 0, html.El("h2", html.Text(allocText.Ports)), portTable(a),
			chain(a), html.El("h2", html.Text(allocText.Placement)), placement(a.Metrics)))
	return f.write(w, r, code, view{title: a.Name, body: body, module: "charts.js"})
}

// allocHead is the title of the pages about an allocation, and leads to each of them.
func (f *Face) allocHead(r *http.Request, a *drover.Allocation) html.Part {
	leads := []tab{{allocText.Allocation, allocPath(a.ID)}}
	for _, t := range []struct {
		tab
		needs policy.Capability
	}{
		{tab{allocText.Logs, allocPath(a.ID, "logs")}, policy.ReadLogs},
		{tab{allocText.Files, allocPath(a.ID, "files")}, policy.ReadFS},
		{tab{allocText.Terminal, allocPath(a.ID, "terminal")}, policy.AllocExec},
	} {
		if f.may(r, a.Namespace, t.needs) {
			leads = append(leads, t.tab)
		}
	}
	return html.Group(html.El("h1", html.Name(cmp.Or(a.Name, a.ID))), tabs(r, allocText.Parts, leads))
}

// allocPart shows a part of an allocation below its tabs.
func (f *Face) allocPart(w http.ResponseWriter, r *http.Request, a *drover.Allocation, title string, body html.Part, err error) error {
	code := http.StatusOK
	if err != nil {
		code, body = httpapi.Status(err), failed(r, err)
	}
	return f.write(w, r, code, view{title: a.Name + " · " + title, body: html.Group(f.allocHead(r, a), body)})
}

func allocFacts(a *drover.Allocation) html.Part {
	pairs := []html.Part{
		factOf(text.Status, status(a.ClientStatus)), factOf(text.Wanted, html.Text(a.DesiredStatus)),
		factOf(text.Job, link(jobPath(a.JobID, a.Namespace), a.JobID)), factOf(text.Version, html.Text(strconv.FormatUint(a.Version(), 10))),
		factOf(text.Group, html.Name(a.TaskGroup)), factOf(text.Namespace, html.Name(a.Namespace)),
		factOf(text.Node, link(html.Path("ui", "clients", a.NodeID), a.NodeName)), factOf(text.ID, html.Text(a.ID)),
		factOf(text.Made, moment(a.CreateTime)),
	}
	if s := a.DeploymentStatus; s != nil {
		word := allocText.Unjudged
		switch {
		case s.IsHealthy():
			word = allocText.Healthy
		case s.IsUnhealthy():
			word = allocText.Unhealthy
		}
		pairs = append(pairs, factOf(allocText.Health, html.Group(status(word), html.If(s.Canary, html.Text(" · "+allocText.Canary)))))
	}
	if a.NetworkStatus != nil {
		pairs = append(pairs, factOf(allocText.Network, html.Name(cmp.Or(a.NetworkStatus.Address, allocText.HostAddress))))
	}
	return facts(pairs...)
}

// taskNames are those of the allocation, in order: also those that have no state yet.
func taskNames(a *drover.Allocation) []string {
	names := map[string]bool{}
	for name := range a.TaskStates {
		names[name] = true
	}
	if a.Job != nil {
		if g := a.Job.Group(a.TaskGroup); g != nil {
			for _, t := range g.Tasks {
				names[t.Name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func (f *Face) taskTable(r *http.Request, a *drover.Allocation) html.Part {
	var rows []html.Part
	logged := f.may(r, a.Namespace, policy.ReadLogs)
	for _, name := range taskNames(a) {
		s := a.TaskStates[name]
		if s == nil {
			s = &drover.TaskState{State: drover.TaskStatePending}
		}
		word := status(s.State)
		if s.Failed {
			word = status(drover.AllocClientFailed)
		}
		rows = append(rows, row(html.Name(name), word, html.Text(strconv.FormatUint(s.Restarts, 10)), instant(s.StartedAt), instant(s.FinishedAt),
			html.If(logged, logLinks(a, name))))
	}
	return table(allocText.Tasks, allocText.TaskColumns, rows, text.Nothing)
}

// timeline has what happened to all tasks on one axis, the newest first, each with how long after the allocation was made it was.
func timeline(a *drover.Allocation) html.Part {
	type entry struct {
		task string
		*drover.TaskEvent
	}
	var all []entry
	for _, name := range taskNames(a) {
		if s := a.TaskStates[name]; s != nil {
			for _, e := range slices.Backward(s.Events) {
				all = append(all, entry{name, e})
			}
		}
	}
	slices.SortStableFunc(all, func(x, y entry) int { return cmp.Compare(y.Time, x.Time) })
	rows := make([]html.Part, 0, len(all))
	for _, e := range all {
		rows = append(rows, row(moment(e.Time), html.Text(short(time.Duration(e.Time-a.CreateTime))), html.Name(e.task), html.Text(e.Type),
			html.Name(e.DisplayMessage)))
	}
	return table(allocText.Timeline, allocText.TimelineColumns, rows, text.Nothing)
}

// resources are what each task has, and uses now, where its node says so.
func (f *Face) resources(r *http.Request, a *drover.Allocation) html.Part {
	held := a.AllocatedResources
	if held == nil {
		return html.El("p", html.Class("muted"), html.Text(text.Nothing))
	}
	var used usage.AllocResourceUsage
	unknown := html.Part{}
	if a.ClientStatus == drover.AllocClientRunning {
		if err := f.ask(r.Context(), r, http.MethodGet, apiPath("client", "allocation", a.ID, "stats"), nil, &used); err != nil {
			unknown = html.El("p", html.Class("muted"), html.Text(allocText.NoUsage+": "), html.Name(httpapi.Message(err)))
		}
	}
	var rows []html.Part
	for _, name := range slices.Sorted(maps.Keys(held.Tasks)) {
		t := held.Tasks[name]
		cpu, memory := parts.None, parts.None
		if u := used.Tasks[name]; u != nil {
			cpu, memory = parts.Used(u.ResourceUsage)
		}
		asked := fmt.Sprintf("%d MHz", t.Cpu.CpuShares)
		if n := len(t.Cpu.ReservedCores); n > 0 {
			asked += fmt.Sprintf(", cores %s", strings.Trim(fmt.Sprint(t.Cpu.ReservedCores), "[]"))
		}
		room := fmt.Sprintf("%d MiB", t.Memory.MemoryMB)
		if t.Memory.MemoryMaxMB > 0 {
			room += fmt.Sprintf(" – %d MiB", t.Memory.MemoryMaxMB)
		}
		rows = append(rows, row(html.Name(name), html.Text(asked), html.Text(cpu), html.Text(room), html.Text(memory), devices(t.Devices)))
	}
	disk := fmt.Sprintf(allocText.Disk, held.Shared.DiskMB)
	if used.Disk != nil {
		disk += " " + fmt.Sprintf(allocText.DiskNow, size(int64(used.Disk.Bytes)))
	}
	var past usage.Past
	if used.Timestamp != 0 {
		_ = f.ask(r.Context(), r, http.MethodGet, parts.PastPath("allocation", a.ID), nil, &past) // it is not known then
	}
	return html.Group(unknown, parts.Past(&past), table(allocText.Resources, allocText.ResourceColumns, rows, text.Nothing),
		html.El("p", html.Class("muted"), html.Text(disk)))
}

func devices(all []*drover.AllocatedDeviceResource) html.Part {
	said := make([]string, 0, len(all))
	for _, d := range all {
		said = append(said, fmt.Sprintf("%s/%s/%s: %s", d.Vendor, d.Type, d.Name, strings.Join(d.DeviceIDs, ", ")))
	}
	return html.Name(cmp.Or(strings.Join(said, "; "), "–"))
}

func portTable(a *drover.Allocation) html.Part {
	var rows []html.Part
	add := func(label, ip string, value, to int) {
		inside := "–"
		if to > 0 {
			inside = strconv.Itoa(to)
		}
		rows = append(rows, row(html.Name(label), html.Text(fmt.Sprintf("%s:%d", cmp.Or(ip, "*"), value)), html.Text(inside)))
	}
	if held := a.AllocatedResources; held != nil {
		for _, p := range held.Shared.Ports {
			add(p.Label, p.HostIP, p.Value, p.To)
		}
		for _, task := range slices.Sorted(maps.Keys(held.Tasks)) {
			for _, n := range held.Tasks[task].Networks {
				for _, p := range slices.Concat(n.ReservedPorts, n.DynamicPorts) {
					add(p.Label, n.IP, p.Value, p.To)
				}
			}
		}
	}
	return table(allocText.Ports, allocText.PortColumns, rows, allocText.NoPorts)
}

// chain says which allocations this one replaces, and which replace it; nothing if there are none.
func chain(a *drover.Allocation) html.Part {
	var pairs, rows []html.Part
	to := func(words string, ids ...string) {
		for _, id := range ids {
			if id != "" {
				pairs = append(pairs, factOf(words, link(allocPath(id), shortID(id))))
			}
		}
	}
	to(allocText.Previous, a.PreviousAllocation)
	to(allocText.Next, a.NextAllocation)
	to(allocText.PreemptedBy, a.PreemptedByAllocation)
	to(allocText.Preempted, a.PreemptedAllocations...)
	if a.FollowupEvalID != "" {
		pairs = append(pairs, factOf(allocText.FollowUp, html.Text(shortID(a.FollowupEvalID))))
	}
	if a.RescheduleTracker != nil {
		for _, e := range slices.Backward(a.RescheduleTracker.Events) {
			rows = append(rows, row(moment(e.RescheduleTime), link(allocPath(e.PrevAllocID), shortID(e.PrevAllocID)),
				link(html.Path("ui", "clients", e.PrevNodeID), shortID(e.PrevNodeID)), html.Text(short(e.Delay))))
		}
	}
	if len(pairs)+len(rows) == 0 {
		return html.Part{}
	}
	parts := []html.Part{html.El("h2", html.Text(allocText.Chain)), facts(pairs...)}
	if len(rows) > 0 {
		parts = append(parts, table(allocText.Chain, allocText.ChainColumns, rows, ""))
	}
	return html.Group(parts...)
}

// placement says how the scheduler came to the node: what it left out, and the scores of the best candidates.
func placement(m *drover.AllocationMetric) html.Part {
	if m == nil {
		return html.El("p", html.Class("muted"), html.Text(allocText.NoScores))
	}
	parts := []html.Part{html.El("p", html.Text(fmt.Sprintf(allocText.Evaluated, m.NodesEvaluated, m.NodesFiltered, m.NodesExhausted)))}
	var reasons, rows []html.Part
	if m.NodesFiltered+m.NodesExhausted > 0 {
		for _, reason := range m.Reasons() {
			reasons = append(reasons, html.El("li", html.Name(reason)))
		}
	}
	for _, s := range m.ScoreMetaData {
		made := make([]string, 0, len(s.Scores))
		for _, name := range slices.Sorted(maps.Keys(s.Scores)) {
			made = append(made, fmt.Sprintf("%s %.3f", name, s.Scores[name]))
		}
		rows = append(rows, row(link(html.Path("ui", "clients", s.NodeID), shortID(s.NodeID)), html.Text(fmt.Sprintf("%.3f", s.NormScore)),
			html.Name(strings.Join(made, ", "))))
	}
	if len(reasons) > 0 {
		parts = append(parts, html.El("ul", reasons...))
	}
	return html.Group(append(parts, table(allocText.Placement, allocText.ScoreColumns, rows, allocText.NoScores))...)
}
