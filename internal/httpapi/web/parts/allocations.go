package parts

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/usage"
)

// Of is what a page with allocations is about: a job, or a node.
type Of uint8

const (
	// OfJob has where each allocation is, of which version, and how its deployment judged it.
	OfJob Of = iota
	// OfNode has of which job each is.
	OfNode
)

// allocationText is the texts of tables of allocations.
var allocationText = struct {
	Allocations, Nothing, Healthy, Unhealthy, Canary string
	Columns                                          map[Of][]string
}{
	Allocations: "Allocations", Nothing: "There is nothing here yet.", Healthy: "healthy", Unhealthy: "unhealthy", Canary: "canary",
	Columns: map[Of][]string{
		OfJob:  {"Id", "Name", "Status", "Wanted", "Version", "Health", "Restarts", "CPU now", "Memory now", "Node", "Made", "Replaced by"},
		OfNode: {"Id", "Name", "Job", "Status", "Wanted", "Restarts", "CPU now", "Memory now", "Made", "Replaced by"},
	},
}

// UsagePath is where the API says what those that run use now; "" if none does.
func UsagePath(all []drover.AllocationListStub) string {
	ids := url.Values{}
	for i := range all {
		if all[i].ClientStatus == drover.AllocClientRunning && len(ids["allocation"]) < usage.MostInBatch {
			ids.Add("allocation", all[i].ID)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return "/v1/usage?" + ids.Encode()
}

// Allocations is a table of allocations, the newest first, with what they use now as far as that is known. Each leads to what replaces it:
// where its work is now.
func Allocations(of Of, all []drover.AllocationListStub, now usage.Samples) html.Part {
	slices.SortFunc(all, func(a, b drover.AllocationListStub) int { return cmp.Compare(b.CreateIndex, a.CreateIndex) })
	rows := make([]html.Part, 0, len(all))
	for i := range all {
		a := &all[i]
		cells := []html.Part{Link(AllocPath(a.ID), ShortID(a.ID)), html.Name(a.Name)}
		if of == OfNode {
			cells = append(cells, Link(JobPath(a.JobID, a.Namespace), a.JobID))
		}
		cells = append(cells, Status(a.ClientStatus), html.Text(a.DesiredStatus))
		if of == OfJob {
			cells = append(cells, html.Text(strconv.FormatUint(a.JobVersion, 10)), judged(a.DeploymentStatus))
		}
		cpu, memory := None, None
		if u := now.Allocations[a.ID]; u != nil {
			cpu, memory = Used(u.ResourceUsage)
		}
		cells = append(cells, restarts(a), html.Text(cpu), html.Text(memory))
		if of == OfJob {
			cells = append(cells, Link(html.Path("ui", "clients", a.NodeID), a.NodeName))
		}
		next := html.Text(None)
		if a.NextAllocation != "" {
			next = Link(AllocPath(a.NextAllocation), ShortID(a.NextAllocation))
		}
		rows = append(rows, Row(append(cells, Moment(a.CreateTime), next)...))
	}
	return Table(allocationText.Allocations, allocationText.Columns[of], rows, allocationText.Nothing)
}

// Used is what a task or an allocation uses in words; dashes where that is not known.
func Used(u *usage.ResourceUsage) (cpu, memory string) {
	cpu, memory = None, None
	if u == nil {
		return cpu, memory
	}
	if c := u.CpuStats; c != nil {
		cpu = fmt.Sprintf("%.0f MHz (%.1f %%)", c.TotalTicks, c.Percent)
	}
	if m := u.MemoryStats; m != nil {
		memory = Size(int64(max(m.Usage, m.RSS)))
	}
	return cpu, memory
}

// Failure says how the tasks ended that failed: of each what is known of its end; nothing if none did.
func Failure(a *drover.Allocation) html.Part {
	var said []html.Part
	for _, name := range slices.Sorted(maps.Keys(a.TaskStates)) {
		s := a.TaskStates[name]
		if s == nil || !s.Failed {
			continue
		}
		for _, e := range slices.Backward(s.Events) {
			if e != nil && slices.Contains(endings, e.Type) {
				said = append(said, html.El("p", html.Class("status bad"), html.Name(name), html.Text(": "+e.Type+": "), html.Name(e.DisplayMessage)))
				break
			}
		}
	}
	return html.Group(said...)
}

// endings are the types of events that say why a task failed.
var endings = []string{"Terminated", "Driver Failure", "Failed Artifact Download", "Setup Failure", "Template failed", "Failed Validation"}

// judged is how a deployment judged an allocation, and whether it is a canary.
func judged(s *drover.AllocDeploymentStatus) html.Part {
	said := html.Text(None)
	if s == nil {
		return said
	}
	switch {
	case s.IsHealthy():
		said = Status(allocationText.Healthy)
	case s.IsUnhealthy():
		said = Status(allocationText.Unhealthy)
	}
	return html.Group(said, html.If(s.Canary, html.Text(" · "+allocationText.Canary)))
}

// restarts is how often the tasks of an allocation were started again, where the list says so.
func restarts(a *drover.AllocationListStub) html.Part {
	if len(a.TaskStates) == 0 {
		return html.Text(None)
	}
	n := uint64(0)
	for _, s := range a.TaskStates {
		if s != nil {
			n += s.Restarts
		}
	}
	return html.Text(strconv.FormatUint(n, 10))
}
