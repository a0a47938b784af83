package lists

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
)

// executions lists what runs, and what ended lately, in all runners that the viewer may see.
func (p *Pages) executions(w http.ResponseWriter, r *http.Request) error {
	l := &list{
		at: html.Path("ui", "executions"), title: text.Executions, path: "/v1/executions", columns: executionColumns, first: "-started",
		empty: text.NoExecutions, full: true, topics: []string{drover.TopicExecution, drover.TopicRunner}, every: 5,
		statuses: []string{execution.StatusRunning, execution.StatusEnded}, fields: executionFields,
		more: html.El("p", html.Class("muted"), html.Text(text.ExecutionsMore)),
	}
	for _, c := range execution.Causes() {
		l.statuses = append(l.statuses, string(c))
	}
	a := askedFor(r, l)
	got, err := read[execution.Listed](p, r, l, a)
	rows := make([]html.Part, 0, len(got.rows))
	for i := range got.rows {
		x := &got.rows[i]
		wall, cpu, memory := parts.None, parts.None, parts.None
		if x.Receipt != nil {
			wall, cpu, memory = parts.Short(x.Receipt.Wall), parts.Short(x.Receipt.UserCPU+x.Receipt.SystemCPU), parts.Size(x.Receipt.PeakMemory)
		}
		environment := execution.Key(x.Namespace, x.Environment)
		rows = append(rows, parts.Row(parts.Link(html.Path("ui", "executions", x.ID), x.ID), p.executionState(x), parts.Instant(x.StartedAt),
			html.Text(wall), html.Text(cpu), html.Text(memory), parts.Link(html.Path("ui", "environments", environment), environment),
			parts.Link(html.Path("ui", "runners", x.RunnerID), x.RunnerID), html.Name(strings.Join(x.Spec.Argv, " "))))
	}
	return show(p, w, r, l, a, got, rows, err)
}

// executionState is how an execution does, or did, in words.
func (p *Pages) executionState(x *execution.Listed) html.Part {
	switch {
	case x.Receipt == nil:
		return parts.Toned("prog", text.Runs)
	case x.Receipt.Cause != execution.CauseExited:
		return parts.Toned("bad", p.Cause(x.Receipt.Cause))
	case x.Receipt.ExitCode != 0:
		return parts.Toned("bad", fmt.Sprintf(text.Exited, x.Receipt.ExitCode))
	}
	return parts.Toned("ok", fmt.Sprintf(text.Exited, 0))
}
