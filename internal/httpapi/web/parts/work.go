package parts

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi/web/html"
)

// WorkText is the texts about work, which pages of jobs, evaluations and deployments have in common.
var WorkText = struct {
	NotPlaced, NotPlacedCount string
	DeploymentGroupColumns    []string
}{
	NotPlaced: "Not placed", NotPlacedCount: "Group %s: %d not placed",
	DeploymentGroupColumns: []string{"Group", "Wanted", "Placed", "Healthy", "Unhealthy", "Canaries"},
}

// Unplaced says in words of which groups something has no place, and why; nothing if all has one.
func Unplaced(title string, failed map[string]*drover.AllocationMetric) html.Part {
	if len(failed) == 0 {
		return html.Part{}
	}
	content := []html.Part{html.Class("notice warn"), html.El("strong", html.Text(title))}
	for _, group := range slices.Sorted(maps.Keys(failed)) {
		reasons := make([]html.Part, 0, 4)
		for _, reason := range failed[group].Reasons() {
			reasons = append(reasons, html.El("li", html.Name(reason)))
		}
		before, after, _ := strings.Cut(WorkText.NotPlacedCount, "%s")
		n := 1
		if failed[group] != nil {
			n += failed[group].CoalescedFailures
		}
		content = append(content, html.El("p", html.Text(before), html.Name(group), html.Text(fmt.Sprintf(after, n))), html.El("ul", reasons...))
	}
	return html.El("div", content...)
}

// DeploymentGroups is the table of a deployment's groups; empty says that it has none. Unpromoted reports whether canaries wait for
// somebody to promote them.
func DeploymentGroups(caption, empty string, d *drover.Deployment) (table html.Part, unpromoted bool) {
	rows := make([]html.Part, 0, len(d.TaskGroups))
	for _, name := range slices.Sorted(maps.Keys(d.TaskGroups)) {
		s := d.TaskGroups[name]
		unpromoted = unpromoted || s.Unpromoted()
		rows = append(rows, Row(html.Name(name), html.Int(s.DesiredTotal), html.Int(s.PlacedAllocs), html.Int(s.HealthyAllocs),
			html.Int(s.UnhealthyAllocs), html.Text(fmt.Sprintf("%d / %d", len(s.PlacedCanaries), s.DesiredCanaries))))
	}
	return Table(caption, WorkText.DeploymentGroupColumns, rows, empty), unpromoted
}
