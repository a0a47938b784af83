package view

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/term"
)

// DeploymentListing is how deployments are listed, the newest first.
func DeploymentListing(o *term.Output) term.Listing[*drover.Deployment] {
	return term.Listing[*drover.Deployment]{
		Path:    "/v1/deployments",
		Compare: func(x, y *drover.Deployment) int { return cmp.Compare(y.CreateIndex, x.CreateIndex) },
		None:    "There are none.", Heading: "ID|Job|Version|Status|Description",
		Row: func(d *drover.Deployment) []string {
			return []string{o.ID(d.ID), d.JobID, strconv.FormatUint(d.JobVersion, 10), d.Status, d.StatusDescription}
		},
	}
}

// Deployment prints a deployment and a row for each group. Promoted is "-" for groups without canaries. Errors: those
// of writing.
func Deployment(app *term.App, o *term.Output, d *drover.Deployment) error {
	if err := term.Facts(app.Out, "ID", o.ID(d.ID), "Job", d.JobID, "Version", strconv.FormatUint(d.JobVersion, 10), "Status", d.Status,
		"Description", d.StatusDescription); err != nil {
		return err
	}
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(d.TaskGroups)) {
		g := d.TaskGroups[name]
		promoted := "-" // there are no canaries
		if g.DesiredCanaries > 0 {
			promoted = term.YesNo(g.Promoted)
		}
		row := []string{name, promoted}
		for _, n := range []int{g.DesiredTotal, g.DesiredCanaries, g.PlacedAllocs, g.HealthyAllocs, g.UnhealthyAllocs} {
			row = append(row, strconv.Itoa(n))
		}
		rows = append(rows, append(row, term.Stamp(g.RequireProgressBy)))
	}
	return term.Table(app.Out, "", "Group|Promoted|Desired|Canaries|Placed|Healthy|Unhealthy|Progress by", rows)
}
