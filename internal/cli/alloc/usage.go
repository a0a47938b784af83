package alloc

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/usage"
)

// listUsage prints what each allocation of a list uses now, in the list's order; of those whose nodes do not say, why that is not known.
// Errors: the API's.
func listUsage(ctx context.Context, app *term.App, c *api.Client, f *StatusFlags, list []*drover.AllocationListStub) error {
	var running []string
	for _, a := range list {
		if a.ClientStatus == drover.AllocClientRunning {
			running = append(running, a.ID)
		}
	}
	used, missing := map[string]*usage.AllocResourceUsage{}, map[string]string{}
	for ids := range slices.Chunk(running, usage.MostInBatch) {
		var batch usage.Samples
		if _, err := c.Get(ctx, "/v1/usage", url.Values{"allocation": ids}, &batch); err != nil {
			return fmt.Errorf("reading what they use: %w", err)
		}
		for _, id := range ids {
			used[id], missing[id] = batch.Allocations[id], batch.Missing[id]
		}
	}
	rows := make([][]string, 0, len(list))
	for _, a := range list {
		row := []string{f.ID(a.ID), a.Name, a.NodeName, a.ClientStatus, "", "", missing[a.ID]}
		if u := used[a.ID]; u != nil && u.ResourceUsage != nil {
			if cpu := u.ResourceUsage.CpuStats; cpu != nil {
				row[4] = fmt.Sprintf("%.0f MHz", cpu.TotalTicks)
			}
			if memory := u.ResourceUsage.MemoryStats; memory != nil {
				row[5] = term.Bytes(float64(max(memory.Usage, memory.RSS)))
			}
		}
		rows = append(rows, row)
	}
	return term.Table(app.Out, "There are no allocations.", "Id|Name|Node|Status|CPU|Memory|Why not", rows)
}
