package nodeview

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/web/cookies"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
	"github.com/drover-project/drover/usage"
)

const (
	newest     = 50 // allocations that a node's page shows
	mostEvents = 20
)

func (p *Pages) node(w http.ResponseWriter, r *http.Request) error {
	return p.nodePage(w, r, http.StatusOK, nil)
}

// nodePage shows a node; with what an action on it failed for, the page has that, and the fields hold what was typed.
func (p *Pages) nodePage(w http.ResponseWriter, r *http.Request, code int, failure error) error {
	id := r.PathValue("node")
	var n drover.Node
	var allocations []drover.AllocationListStub
	query := url.Values{"per_page": {strconv.Itoa(newest)}, "reverse": {"true"}}
	err := p.Ask(r, api("node", id), &n)
	if err == nil {
		err = p.Ask(r, api("node", id, "allocations")+"?"+query.Encode(), &allocations)
	}
	if err != nil {
		return p.Show(w, r, id, html.Part{}, err)
	}
	problem := html.Part{}
	if failure != nil {
		problem = p.Failed(r, failure)
	}
	about := []string{drover.TopicNode}
	more := html.If(len(allocations) == newest, html.El("p", html.Class("muted"), html.Text(fmt.Sprintf(Text.Newest, newest))))
	body := html.Group(html.El("h1", html.Name(cmp.Or(n.Name, id))), problem, done(r),
		parts.Live("state", about, 0, nodeFacts(&n), draining(&n)),
		parts.Live("steer", about, 0, p.steering(r, &n)),
		parts.Live("allocations", []string{drover.TopicNode, drover.TopicAllocation}, 5, html.El("h2", html.Text(Text.Allocations)),
			p.allocations(r, allocations), more),
		parts.Live("usage", nil, 2, html.El("h2", html.Text(Text.Resources)), p.usage(r, &n)),
		parts.Live("meta", about, 0, html.El("h2", html.Text(Text.Metadata)), p.metadata(r, &n)),
		parts.Live("drivers", about, 0, html.El("h2", html.Text(Text.Drivers)), drivers(&n), html.El("h2", html.Text(Text.Events)), events(&n),
			attributes(&n)))
	return p.Write(w, r, code, cmp.Or(n.Name, id), body, "charts.js")
}

// allocations is a table of those of a node, with what they use now.
func (p *Pages) allocations(r *http.Request, all []drover.AllocationListStub) html.Part {
	var now usage.Samples
	if path := parts.UsagePath(all); path != "" {
		_ = p.Ask(r, path, &now) // it is not known then
	}
	return parts.Allocations(parts.OfNode, all, now)
}

// done says what the action did that led to the page; nothing if none did.
func done(r *http.Request) html.Part {
	words, known := Text.Actions[cookies.Told(r)]
	if !known {
		return html.Part{}
	}
	return html.El("p", html.Class("notice ok"), html.Attr("role", "status"), html.Text(words.Done))
}

func nodeFacts(n *drover.Node) html.Part {
	return parts.Facts(parts.Fact(Text.Status, parts.Status(n.Condition())),
		parts.Fact(Text.Eligibility, html.Text(n.SchedulingEligibility)), parts.Fact(Text.Pool, html.Name(n.NodePool)),
		parts.Fact(Text.Datacenter, html.Name(n.Datacenter)), parts.Fact(Text.Class, html.Name(cmp.Or(n.NodeClass, parts.None))),
		parts.Fact(Text.Address, html.Name(cmp.Or(n.HTTPAddr, parts.None))),
		parts.Fact(Text.Version, html.Name(cmp.Or(n.Attributes["drover.version"], n.Attributes["nomad.version"]))),
		parts.Fact(Text.ID, html.Text(n.ID)))
}

// draining says until when a node is drained; nothing of others.
func draining(n *drover.Node) html.Part {
	if !n.Drain || n.DrainStrategy == nil {
		return html.Part{}
	}
	until := html.Text(Text.NoEnd)
	if !n.DrainStrategy.ForceDeadline.IsZero() {
		until = html.Group(html.Text(Text.Until+" "), parts.Instant(n.DrainStrategy.ForceDeadline))
	}
	return html.El("div", html.Class("notice warn"), html.El("strong", html.Text(Text.Draining+" ")), until)
}

// steering are the forms of what can be done with a node; nothing for who may not.
func (p *Pages) steering(r *http.Request, n *drover.Node) html.Part {
	if !p.steers(r) {
		return html.Part{}
	}
	if n.Drain {
		return html.El("div", html.Class("row actions"), act(n.ID, "cancel",
			check("eligible", Text.MarkEligible, true)))
	}
	turn := "ineligible"
	if n.SchedulingEligibility != drover.NodeEligible {
		turn = "eligible"
	}
	fields := html.Group(
		html.El("div", html.El("label", html.Attr("for", "deadline"), html.Text(Text.Deadline), parts.Hint(Text.DeadlineMore)),
			html.El("input", html.ID("deadline"), html.Attr("name", "deadline"), html.Attr("value", cmp.Or(r.PostForm.Get("deadline"), "1h")),
				html.Attr("autocomplete", "off"))),
		check("system", Text.IgnoreSystem, r.PostForm.Has("system")))
	return html.Group(html.El("div", html.Class("row actions"), act(n.ID, turn)),
		html.El("details", html.ID("drain"), html.Class("panel"), html.Flag("open", r.PostForm.Has("deadline")),
			html.El("summary", html.Text(Text.Drain)), html.El("p", html.Class("muted"), html.Text(Text.DrainMore)), act(n.ID, "drain", fields)))
}

// check is a box to tick, or ticked.
func check(name, words string, ticked bool) html.Part {
	box := []html.Part{html.Attr("type", "checkbox"), html.Attr("name", name), html.Attr("value", "1")}
	if ticked {
		box = append(box, html.Flag("checked", true))
	}
	return html.El("label", html.Class("tick"), html.El("input", box...), html.Text(" "+words))
}

// act is a form that asks for an action on a node.
func act(id, name string, fields ...html.Part) html.Part {
	return html.El("form", html.Attr("method", "post"), html.Action(Path(id, name)), html.Group(fields...),
		html.El("button", html.Class(look(name)), html.Text(Text.Actions[name].Button)))
}

// look is the class of an action's button: what ends something looks so.
func look(name string) string {
	if Text.Actions[name].Sure != "" {
		return "ends"
	}
	return ""
}

// usage is what the node has, what allocations hold of it, and what it uses now, where it says so.
func (p *Pages) usage(r *http.Request, n *drover.Node) html.Part {
	total, rows := n.Total(), []html.Part{}
	var now usage.HostStats
	unknown := html.Part{}
	if n.Status != drover.NodeStatusReady {
		unknown = html.El("p", html.Class("muted"), html.Text(Text.NoStats+"."))
	} else if err := p.Ask(r, api("client", "stats")+"?"+url.Values{"node_id": {n.ID}}.Encode(), &now); err != nil {
		unknown = html.El("p", html.Class("muted"), html.Text(Text.NoStats+": "), html.Name(httpapi.Message(err)))
	}
	if len(now.CPU) > 0 {
		busy := 0.0
		for _, c := range now.CPU {
			busy += 100 - c.Idle
		}
		share := busy / float64(len(now.CPU))
		rows = append(rows, parts.Row(html.Text(Text.CPU), html.Text(fmt.Sprintf("%.1f %%", share)), meter(Text.CPU, share)))
	}
	if m := now.Memory; m != nil && m.Total > 0 {
		share := float64(m.Used) * 100 / float64(m.Total)
		rows = append(rows, parts.Row(html.Text(Text.Memory),
			html.Text(fmt.Sprintf(Text.Held, parts.Size(int64(m.Used)), parts.Size(int64(m.Total)))), meter(Text.Memory, share)))
	}
	if d := now.AllocDirStats; d != nil && d.Size > 0 {
		rows = append(rows, parts.Row(html.Text(Text.Disk),
			html.Text(fmt.Sprintf(Text.Held, parts.Size(int64(d.Used)), parts.Size(int64(d.Size)))), meter(Text.Disk, d.UsedPercent)))
	}
	facts := []html.Part{
		parts.Fact(Text.CPU, html.Text(fmt.Sprintf("%d MHz", total.CPU))),
		parts.Fact(Text.Memory, html.Text(parts.Size(int64(total.MemoryMB)<<20))),
		parts.Fact(Text.Disk, html.Text(parts.Size(int64(total.DiskMB)<<20))),
	}
	if now.Uptime > 0 {
		facts = append(facts, parts.Fact(Text.Uptime, html.Text(parts.Short(time.Duration(now.Uptime)*time.Second))))
	}
	var past usage.Past
	if len(rows) > 0 {
		_ = p.Ask(r, parts.PastPath("node_id", n.ID), &past) // it is not known then
	}
	return html.Group(parts.Facts(facts...), unknown, parts.Past(&past),
		html.If(len(rows) > 0, parts.Table(Text.Resources, Text.StatColumns, rows, "")))
}

func meter(name string, percent float64) html.Part {
	return html.El("meter", html.Attr("min", "0"), html.Attr("max", "100"), html.Attr("high", "90"), html.Attr("aria-label", name),
		html.Attr("value", strconv.FormatFloat(percent, 'f', 1, 64)))
}

// metadata has each key with its value, and forms for who may set them.
func (p *Pages) metadata(r *http.Request, n *drover.Node) html.Part {
	steers := p.steers(r)
	rows := make([]html.Part, 0, len(n.Meta))
	for _, key := range sorted(n.Meta) {
		rows = append(rows, parts.Row(html.Name(key), html.Name(n.Meta[key]), html.If(steers, act(n.ID, "unset", parts.Hidden("key", key)))))
	}
	list := parts.Table(Text.Metadata, Text.MetaColumns, rows, Text.Nothing)
	if !steers {
		return list
	}
	field := func(id, words string) html.Part {
		return html.El("div", html.El("label", html.Attr("for", "meta-"+id), html.Text(words)), html.El("input", html.ID("meta-"+id),
			html.Attr("name", id), html.Attr("value", r.PostForm.Get(id)), html.Attr("autocomplete", "off"), html.Attr("spellcheck", "false")))
	}
	return html.Group(list, html.El("form", html.Class("row"), html.Attr("method", "post"), html.Action(Path(n.ID, "meta")),
		field("key", Text.Key), field("value", Text.Value), html.El("button", html.Text(Text.Set))),
		html.El("p", html.Class("muted"), html.Text(Text.MetaMore)))
}

func drivers(n *drover.Node) html.Part {
	var rows []html.Part
	for _, name := range sorted(n.Drivers) {
		d := n.Drivers[name]
		if d == nil || !d.Detected {
			continue
		}
		health := Text.Unhealthy
		if d.Healthy {
			health = Text.Healthy
		}
		rows = append(rows, parts.Row(html.Name(name), parts.Status(health), html.Name(d.HealthDescription)))
	}
	return parts.Table(Text.Drivers, Text.DriverColumns, rows, Text.Nothing)
}

func events(n *drover.Node) html.Part {
	var rows []html.Part
	for _, e := range slices.Backward(n.Events) {
		if len(rows) < mostEvents && e != nil {
			rows = append(rows, parts.Row(parts.Instant(e.Timestamp), html.Text(e.Subsystem), html.Name(e.Message)))
		}
	}
	return parts.Table(Text.Events, Text.EventColumns, rows, Text.Nothing)
}

func attributes(n *drover.Node) html.Part {
	rows := make([]html.Part, 0, len(n.Attributes))
	for _, name := range sorted(n.Attributes) {
		rows = append(rows, parts.Row(html.Name(name), html.Name(n.Attributes[name])))
	}
	return html.El("details", html.El("summary", html.Text(fmt.Sprintf("%s (%d)", Text.Attributes, len(rows)))),
		parts.Table(Text.Attributes, []string{Text.Key, Text.Value}, rows, Text.Nothing))
}

// nodeAction does what a form of a node's page asks for, by the API. What ends or takes something is asked for once more, by a page that
// names the node. The viewer is led back; an error stands on the node's page, with what was typed.
func (p *Pages) nodeAction(w http.ResponseWriter, r *http.Request) error {
	id, name := r.PathValue("node"), r.PathValue("action")
	words, known := Text.Actions[name]
	if err := r.ParseForm(); err != nil {
		return drover.Errorf(drover.Invalid, "%s: %w", Text.BadForm, err)
	}
	if !known {
		return drover.Errorf(drover.NotFound, "%s: %q", Text.NoAction, name)
	}
	path, body, err := change(r, id, name)
	if err == nil && words.Sure != "" && r.PostForm.Get("sure") == "" {
		return p.confirm(w, r, id, name, words)
	}
	if err == nil {
		err = p.Send(r, http.MethodPut, path, body)
	}
	if err != nil {
		return p.nodePage(w, r, httpapi.Status(err), err)
	}
	cookies.Tell(w, r, Path(id), name)
	return nil
}

// confirm asks for the action once more, with all that its form held.
func (p *Pages) confirm(w http.ResponseWriter, r *http.Request, id, name string, words Words) error {
	var n drover.NodeListStub
	if err := p.Ask(r, api("node", id), &n); err != nil {
		return p.Show(w, r, id, html.Part{}, err)
	}
	what := cmp.Or(n.Name, id)
	if key := r.PostForm.Get("key"); key != "" {
		what += " › " + key
	}
	var fields []html.Part
	for _, field := range []string{"deadline", "system", "key"} {
		if r.PostForm.Has(field) {
			fields = append(fields, parts.Hidden(field, r.PostForm.Get(field)))
		}
	}
	if name == "drain" {
		fields = append(fields, p.drainPlan(r, n.ID))
	}
	return p.Write(w, r, http.StatusOK, words.Button, p.Confirm(Path(id, name), Path(id), what, words.Sure, words.Button, fields...), "")
}

// change is the request of the API for an action. Errors: Invalid, which names the field.
func change(r *http.Request, id, name string) (path string, body any, err error) {
	switch name {
	case "drain":
		spec := drover.DrainSpec{IgnoreSystemJobs: r.PostForm.Has("system")}
		if typed := r.PostForm.Get("deadline"); typed != "" {
			spec.Deadline, err = time.ParseDuration(typed)
			if err != nil || spec.Deadline <= 0 {
				return "", nil, drover.Errorf(drover.Invalid, "deadline: %q is no duration as 1h or 30m", typed)
			}
		}
		return api("node", id, "drain"), map[string]any{"NodeID": id, "DrainSpec": spec}, nil
	case "cancel":
		return api("node", id, "drain"), map[string]any{"NodeID": id, "MarkEligible": r.PostForm.Has("eligible")}, nil
	case "meta", "unset":
		key := r.PostForm.Get("key")
		if key == "" {
			return "", nil, drover.Errorf(drover.Invalid, "%s", Text.NoKey)
		}
		var value *string
		if name == "meta" {
			value = new(r.PostForm.Get("value"))
		}
		return api("client", "metadata"), map[string]any{"NodeID": id, "Meta": map[string]*string{key: value}}, nil
	}
	return api("node", id, "eligibility"), map[string]any{"NodeID": id, "Eligibility": name}, nil
}
