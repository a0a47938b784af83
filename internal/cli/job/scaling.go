package job

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// scaling is what the API tells of a job's counts, as far as it is shown.
type scaling struct {
	TaskGroups map[string]struct{ Events []*drover.ScalingEvent }
}

// scalingEventsCommand is "drover job scaling-events", newest first of each group. The server keeps the last 20 of a group.
func scalingEventsCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	run := func(ctx context.Context, c *api.Client, args []string) error {
		j, err := c.Job(ctx, args[0])
		if err != nil {
			return err
		}
		var s scaling
		if _, err := c.Get(ctx, api.JobPath(j.ID, "/scale"), api.InNamespace(j.Namespace), &s); err != nil {
			return err
		}
		events := map[string][]*drover.ScalingEvent{} // as Nomad prints them
		var rows [][]string
		for _, group := range slices.Sorted(maps.Keys(s.TaskGroups)) {
			list := s.TaskGroups[group].Events
			if len(list) > 0 {
				events[group] = list
			}
			for _, e := range list {
				rows = append(rows, scalingRow(o, group, e))
			}
		}
		if done, err := o.Data(app.Out, events); done {
			return err
		}
		return term.Table(app.Out, "No group of the job was scaled.", "Group|Count|Before|Error|Evaluation|Time|Message", rows)
	}
	c := term.NomadCommand(app, "scaling-events JOB", "List who changed the counts of a job's groups, and when", 1, 1, run)
	o.Bind(c.Flags())
	return c
}

// scalingRow is one event's. An event that only tells something, as an autoscaler's error does, has no count.
func scalingRow(o *term.Output, group string, e *drover.ScalingEvent) []string {
	count, eval := "", ""
	if e.Count != nil {
		count = strconv.FormatInt(*e.Count, 10)
	}
	if e.EvalID != nil {
		eval = o.ID(*e.EvalID)
	}
	return []string{
		group, count, strconv.FormatInt(e.PreviousCount, 10), term.YesNo(e.Error), eval, term.StampNanos(e.Time), e.Message,
	}
}
