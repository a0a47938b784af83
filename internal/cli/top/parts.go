package top

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/usage"
)

// nodes writes what nodes use. A node that does not answer, or is down, is listed without.
func (l *look) nodes(ctx context.Context) error {
	var list []*drover.NodeListStub
	if _, err := l.api.Get(ctx, "/v1/nodes", nil, &list); err != nil {
		return err
	}
	slices.SortFunc(list, func(x, y *drover.NodeListStub) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.ID, y.ID))
	})
	var rows [][]string
	for _, n := range list[:min(len(list), mostRows)] {
		status := n.Status
		if n.Drain {
			status = "draining"
		} else if n.SchedulingEligibility != drover.NodeEligible && n.Status == drover.NodeStatusReady {
			status = n.SchedulingEligibility
		}
		rows = append(rows, append([]string{n.Name, term.ShortID(n.ID), n.NodePool, status}, l.uses(ctx, n)...))
	}
	return l.table("There are no nodes.", "Node|ID|Pool|Status|CPU|Memory|Disk", rows, len(list))
}

// uses returns what a node's machine uses of its cores, memory and disk.
func (l *look) uses(ctx context.Context, n *drover.NodeListStub) []string {
	if n.Status != drover.NodeStatusReady {
		return []string{"", "", ""}
	}
	ctx, cancel := l.app.Clock.WithTimeout(ctx, answerWait)
	defer cancel()
	var s usage.HostStats
	if _, err := l.api.Get(ctx, "/v1/client/stats", url.Values{"node_id": {n.ID}}, &s); err != nil {
		return []string{"", "", ""} // it may be away, or ours not to know
	}
	busy, memory, disk := 0.0, "", ""
	for _, c := range s.CPU {
		busy += c.TotalPercent / float64(len(s.CPU))
	}
	if m := s.Memory; m != nil {
		memory = of(m.Used, m.Total)
	}
	if d := s.AllocDirStats; d != nil {
		disk = of(d.Used, d.Size)
	}
	return []string{fmt.Sprintf("%.0f %% of %d", busy, len(s.CPU)), memory, disk}
}

// of is a part of a whole, both in bytes.
func of(used, total uint64) string {
	if total == 0 {
		return ""
	}
	return fmt.Sprintf("%d %% of %s", used*100/total, term.Bytes(float64(total)))
}

// jobs writes those of which something waits or failed, those with most of it first, and how many allocations run.
func (l *look) jobs(ctx context.Context) error {
	var list []*drover.JobListStub
	if _, err := l.api.Get(ctx, "/v1/jobs", l.api.Anywhere(), &list); err != nil {
		return err
	}
	running, rows := 0, [][]string(nil)
	wrong := map[*drover.JobListStub]int{}
	sums := map[*drover.JobListStub]drover.TaskGroupSummary{}
	for _, j := range list {
		if j.JobSummary == nil {
			continue
		}
		var sum drover.TaskGroupSummary
		for _, g := range j.JobSummary.Summary {
			sum.Queued, sum.Starting, sum.Running = sum.Queued+g.Queued, sum.Starting+g.Starting, sum.Running+g.Running
			sum.Failed, sum.Lost, sum.Unknown = sum.Failed+g.Failed, sum.Lost+g.Lost, sum.Unknown+g.Unknown
		}
		running += sum.Running
		if n := sum.Queued + sum.Starting + sum.Failed + sum.Lost + sum.Unknown; n > 0 && j.Status != drover.JobStatusDead {
			wrong[j], sums[j] = n, sum
		}
	}
	order := slices.SortedFunc(maps.Keys(wrong), func(x, y *drover.JobListStub) int {
		return cmp.Or(cmp.Compare(wrong[y], wrong[x]), cmp.Compare(x.ID, y.ID), cmp.Compare(x.Namespace, y.Namespace))
	})
	for _, j := range order[:min(len(order), mostRows)] {
		row := []string{j.ID, j.Namespace}
		for _, n := range []int{
			sums[j].Queued, sums[j].Starting, sums[j].Running, sums[j].Failed, sums[j].Lost, sums[j].Unknown,
		} {
			row = append(row, strconv.Itoa(n))
		}
		rows = append(rows, row)
	}
	none := fmt.Sprintf("None of %s; %s.", term.Plural(len(list), "job"), term.Plural(running, "running allocation"))
	return l.table(none, "Job|Namespace|Queued|Starting|Running|Failed|Lost|Unknown", rows, len(order))
}

// environments writes how the pools of the chosen namespace stand.
func (l *look) environments(ctx context.Context) error {
	list, err := l.native.Environments(ctx)
	if err != nil {
		return err
	}
	var rows [][]string
	for _, e := range list[:min(len(list), mostRows)] {
		p, err := l.native.Pool(ctx, e.Key())
		if drover.CodeOf(err) == drover.NotFound {
			continue // deleted meanwhile
		}
		if err != nil {
			return err
		}
		rows = append(rows, []string{e.Key(), strconv.Itoa(p.Size), strconv.Itoa(p.Warm), strconv.Itoa(p.Claimed), p.LastError})
	}
	return l.table("There are none.", "Environment|Pool|Warm|Claimed|Last error", rows, len(list))
}

// table writes the rows, and how many more there are.
func (l *look) table(none, heading string, rows [][]string, all int) error {
	if err := term.Table(l.w, none, heading, rows); err != nil || all <= mostRows {
		return err
	}
	_, err := fmt.Fprintf(l.w, "… and %d more\n", all-mostRows)
	return err
}
