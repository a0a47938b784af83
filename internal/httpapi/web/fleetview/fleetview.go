package fleetview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
)

// most is how many rows a table has.
const most = 100

// MachinePath is the page of a machine.
func MachinePath(id string) html.URL { return html.Path("ui", "fleet", "machines", id) }

// Pools shows how pools stand, and what is wrong with them.
func Pools(list []fleet.PoolStatus) html.Part {
	rows := make([]html.Part, 0, len(list))
	for i := range list {
		p := &list[i]
		state, wrong := parts.Toned("ok", Text.Well), []string{}
		for _, why := range []struct{ tone, says string }{
			{"bad", p.Problem},
			{"warn", p.Alert},
			{"warn", p.Lacks},
			{"warn", p.Failed},
			{"warn", paused(&p.Pool)},
		} {
			if why.says != "" {
				wrong = append(wrong, why.says)
			}
		}
		switch {
		case p.Problem != "":
			state = parts.Toned("bad", Text.Waits)
		case len(wrong) > 0:
			state = parts.Toned("warn", Text.Waits)
		}
		rows = append(rows, parts.Row(html.Name(p.Name), state, html.Text(counts(p.Machines)), html.Int(p.Least),
			html.Text(fleet.Money(p.PerHour)),
			html.Text(today(p)), html.Name(cmp.Or(strings.Join(wrong, "; "), parts.None)),
			html.El("a", html.Href(html.Path("ui", "fleet", "simulate").With("pool", p.Name)),
				html.Attr("aria-label", Text.SimulateLink+" "+p.Name), html.Text(Text.SimulateLink))))
	}
	return parts.Table(Text.Pools, Text.PoolColumns, rows, Text.NoPools)
}

// today is what a pool cost today, and of how much.
func today(p *fleet.PoolStatus) string {
	if p.Policy == nil || p.Policy.Budget.PerDay == 0 {
		return fleet.Money(p.Today)
	}
	return fmt.Sprintf(Text.OfBudget, fleet.Money(p.Today), fleet.Money(p.Policy.Budget.PerDay),
		fleet.Money(max(0, p.Policy.Budget.PerDay-p.Today)))
}

// paused says what a pool does not do.
func paused(p *fleet.Pool) string {
	var says []string
	if p.PauseCreates {
		says = append(says, Text.PausedCreates)
	}
	if p.PauseDestroys {
		says = append(says, Text.PausedDestroys)
	}
	if len(says) > 0 && p.PauseReason != "" {
		says = append(says, p.PauseReason)
	}
	return strings.Join(says, ", ")
}

func counts(byState map[string]int) string {
	said := make([]string, 0, len(byState))
	for _, state := range slices.Sorted(maps.Keys(byState)) {
		if n := byState[state]; n > 0 {
			said = append(said, fmt.Sprintf("%d %s", n, state))
		}
	}
	return cmp.Or(strings.Join(said, ", "), parts.None)
}

// Machines lists machines, those that are there first, with why each is as it is.
func Machines(list []fleet.Instance) html.Part {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b fleet.Instance) int {
		return cmp.Or(cmp.Compare(boolean(a.State.Terminal()), boolean(b.State.Terminal())), b.StateAt.Compare(a.StateAt), cmp.Compare(a.ID,
			b.ID))
	})
	rows := make([]html.Part, 0, most)
	for i := range list[:min(len(list), most)] {
		m := &list[i]
		rows = append(rows, parts.Row(parts.Link(MachinePath(m.ID), parts.ShortID(m.ID)), parts.Status(m.State.String()),
			parts.Instant(m.StateAt), html.Name(m.Pool), html.Name(m.Offering), html.Text(fleet.Money(m.Price)), html.Text(fleet.Money(m.Charged)),
			html.Int(m.Work), html.Name(why(m))))
	}
	cut := html.If(len(list) > most, html.El("p", html.Class("muted"), html.Text(fmt.Sprintf(Text.NewestOf, most, len(list)))))
	return html.Group(parts.Table(Text.Machines, Text.MachineColumns, rows, Text.NoMachines), cut)
}

// why is what matters most of a machine: what went wrong, why it is as it is, why it was bought.
func why(m *fleet.Instance) string { return cmp.Or(m.LastError, m.Reason, m.Bought, parts.None) }

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Waiting lists work that waits for machines.
func Waiting(list []fleet.Waiting) html.Part {
	rows := make([]html.Part, 0, most)
	for i := range list[:min(len(list), most)] {
		w := &list[i]
		rows = append(rows, parts.Row(html.Name(w.Class), html.Int(w.Count), html.Text(fmt.Sprintf("%d / %d", w.Position, w.Of)),
			parts.Instant(w.Since), parts.Instant(w.ReadyAt), html.Name(w.Pool), html.Name(w.Reason)))
	}
	return parts.Table(Text.Waiting, Text.WaitingColumns, rows, Text.NoWaiting)
}

// Plans say what the fleet would do now.
func Plans(list []fleet.Plan) html.Part {
	var rows, notes []html.Part
	for _, p := range list {
		for _, a := range p.Actions {
			of := html.Name(a.Offering)
			what := string(a.Kind)
			if a.Count > 0 {
				what += " " + strconv.Itoa(a.Count)
			}
			if a.Instance != "" {
				of = parts.Link(MachinePath(a.Instance), parts.ShortID(a.Instance))
			}
			rows = append(rows, parts.Row(html.Name(p.Pool), html.Text(what), of, html.Name(a.Reason)))
		}
		if p.Note != "" {
			notes = append(notes, html.El("p", html.Class("muted"), html.Name(p.Pool), html.Text(": "), html.Name(p.Note)))
		}
		if p.Deferred > 0 {
			notes = append(notes, html.El("p", html.Class("muted"), html.Name(p.Pool), html.Text(": "+fmt.Sprintf(Text.Deferred, p.Deferred))))
		}
	}
	return html.Group(parts.Table(Text.Plan, Text.PlanColumns, rows[:min(len(rows), most)], Text.NoPlan), html.Group(notes...))
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// Explanation says why a machine is there, what it costs, what runs on it, and what became of it.
func Explanation(x *fleet.Explanation) html.Part {
	m := &x.Instance
	sentences := make([]html.Part, 0, len(x.Text))
	for _, s := range x.Text {
		sentences = append(sentences, html.El("li", html.Name(s)))
	}
	jobs := make([]html.Part, 0, len(x.Jobs))
	for _, j := range x.Jobs {
		jobs = append(jobs, html.El("li", parts.Link(html.Path("ui", "jobs", j.ID+"@"+j.Namespace), j.ID)))
	}
	history := make([]html.Part, 0, len(x.History))
	for _, h := range slices.Backward(x.History) {
		history = append(history, parts.Row(parts.Instant(h.At), html.Text(h.What), html.Name(cmp.Or(h.Reason, parts.None))))
	}
	node := html.Text(parts.None)
	if m.NodeID != "" {
		node = parts.Link(html.Path("ui", "clients", m.NodeID), parts.ShortID(m.NodeID))
	}
	return html.Group(html.El("ul", sentences...),
		parts.Facts(parts.Fact(Text.State, parts.Status(m.State.String())), parts.Fact(Text.Since, parts.Instant(m.StateAt)),
			parts.Fact(Text.Pool, html.Name(m.Pool)), parts.Fact(Text.Offering, html.Name(m.Offering)),
			parts.Fact(Text.Price, html.Text(fleet.Money(m.Price))), parts.Fact(Text.Charged, html.Text(fleet.Money(m.Charged))),
			parts.Fact(Text.Work, html.Int(m.Work)), parts.Fact(Text.Behavior, html.Text(cmp.Or(string(m.Behavior), parts.None))),
			parts.Fact(Text.Node, node), parts.Fact(Text.Provider, html.Name(cmp.Or(m.ProviderID, parts.None))),
			parts.Fact(Text.Bought, html.Name(cmp.Or(m.Bought, parts.None))), parts.Fact(Text.Now, html.Name(cmp.Or(m.Reason, parts.None)))),
		html.If(len(jobs) > 0, html.Group(html.El("h2", html.Text(Text.Jobs)), html.El("ul", jobs...))),
		html.El("h2", html.Text(Text.History)), parts.Table(Text.History, Text.HistoryColumns, history, parts.None))
}
