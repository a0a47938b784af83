package nodeview

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
)

// TopologyPath is where the map is.
func TopologyPath() html.URL { return html.Path("ui", "topology") }

const (
	tablePage = 50 // nodes of a page of the table
	shown     = 20 // allocations of a node that was picked
)

// asked is what of the topology an address asks for.
type asked struct{ group, colour, words, node, job string }

func askedFor(r *http.Request) asked {
	q := r.URL.Query()
	a := asked{group: q.Get("group"), colour: q.Get("colour"), words: q.Get("q"), node: q.Get("node"), job: q.Get("job")}
	if Text.Groups[a.group] == "" {
		a.group = "pool"
	}
	if Text.Colours[a.colour] == "" {
		a.colour = "cpu"
	}
	return a
}

// path is the address of the same with another view; "" is the map.
func (a asked) path(view string) html.URL {
	to := TopologyPath().With("group", a.group).With("colour", a.colour)
	if a.words != "" {
		to = to.With("q", a.words)
	}
	if a.job != "" {
		to = to.With("job", a.job)
	}
	if view != "" {
		to = to.With("view", view)
	}
	return to
}

// JobPath is the map with the marks of a job: where it runs.
func JobPath(id, namespace string) html.URL { return TopologyPath().With("job", id+"@"+namespace) }

// runsOn are the nodes on which the job's allocations run or begin to, and which a person reads; nothing where none is asked for.
func (p *Pages) runsOn(r *http.Request, a asked) (nodes map[string]bool, said html.Part, err error) {
	if a.job == "" {
		return nil, html.Part{}, nil
	}
	id, namespace := a.job, drover.DefaultNamespace
	if i := strings.LastIndex(a.job, "@"); i > 0 {
		id, namespace = a.job[:i], a.job[i+1:]
	}
	var allocations []drover.AllocationListStub
	query := url.Values{"namespace": {namespace}, "stale": {"true"}}
	if err := p.Ask(r, api("job", id, "allocations")+"?"+query.Encode(), &allocations); err != nil {
		return nil, html.Part{}, err
	}
	nodes, running := map[string]bool{}, 0
	for i := range allocations {
		if s := allocations[i].ClientStatus; s == drover.AllocClientRunning || s == drover.AllocClientPending {
			nodes[allocations[i].NodeID] = true
			running++
		}
	}
	all := a
	all.job = ""
	return nodes, html.El("p", html.Text(fmt.Sprintf(Text.Marks, running, len(nodes))), html.Text(" "),
		parts.Link(parts.JobPath(id, namespace), id), html.Text(" · "), html.El("a", html.Href(all.path(r.URL.Query().Get("view"))),
			html.Text(Text.NoMarks))), nil
}

// marks is that for the map, brought up to date as allocations come and go; the script fades the other nodes.
func (p *Pages) marks(r *http.Request, a asked) html.Part {
	if a.job == "" {
		return html.Part{}
	}
	topics := []string{drover.TopicAllocation}
	nodes, said, err := p.runsOn(r, a)
	if err != nil {
		return parts.Live("marks", topics, 0, p.Failed(r, err))
	}
	return parts.Live("marks", topics, 0, html.El("div", html.ID("topology-marks"),
		html.Attr("data-nodes", strings.Join(sorted(nodes), " ")), said))
}

// topologyData is what the map is drawn of, for its script.
func (p *Pages) topologyData(w http.ResponseWriter, r *http.Request) error {
	path := api("topology") + "?stale=true"
	if layout := r.URL.Query().Get("layout"); layout != "" {
		path += "&" + url.Values{"layout": {layout}}.Encode()
	}
	return p.Pass(w, r, path)
}

// topology shows all nodes: as a map that a script draws, or as a table. The map's page asks for no more than the node that was picked.
func (p *Pages) topology(w http.ResponseWriter, r *http.Request) error {
	a := askedFor(r)
	if r.URL.Query().Get("view") == "table" {
		return p.topologyTable(w, r, a)
	}
	texts, err := json.Marshal(Text.States)
	if err != nil {
		return err
	}
	zoom := func(what, sign, words string) html.Part {
		return html.El("button", html.Attr("type", "button"), html.Attr("data-zoom", what), html.Attr("aria-label", words),
			html.Attr("title", words), html.Text(sign))
	}
	picture := html.El("div", html.Class("map"), html.Attr("data-scripted", "show"), html.Attr("hidden", ""),
		html.El("div", html.ID("topology-tools"), html.Class("row"), html.Attr("role", "group"), html.Attr("aria-label", Text.Tools),
			zoom("in", "+", Text.ZoomIn), zoom("out", "−", Text.ZoomOut), zoom("fit", Text.ZoomFit, Text.ZoomFit),
			html.El("output", html.ID("topology-said"), html.Class("grow"), html.Attr("aria-live", "polite"))),
		html.El("canvas", html.ID("topology"), html.Attr("tabindex", "0"), html.Attr("role", "application"), html.Attr("aria-label", Text.Map),
			html.Attr("aria-describedby", "topology-keys"), html.Attr("data-source", html.Path("ui", "topology", "data").String()),
			html.Attr("data-states", string(texts)), html.Attr("data-node", Text.MapNode), html.Attr("data-all", Text.MapAll),
			html.Attr("data-found", Text.MapFound), html.Attr("data-lost", Text.MapLost), html.Attr("data-none", Text.NoNodes),
			html.Attr("data-nameless", Text.Nameless)),
		legend(a), html.El("p", html.ID("topology-keys"), html.Class("muted"), html.Text(Text.MapKeys)))
	body := html.Group(html.El("h1", html.Text(Text.Topology)), controls(a, ""), p.marks(r, a),
		html.El("p", html.Class("muted"), html.Attr("data-scripted", "hide"), html.Text(Text.NeedsScript)), picture,
		parts.Live("picked", []string{drover.TopicNode, drover.TopicAllocation}, 0, html.El("h2", html.Text(Text.Picked)), p.picked(r, a.node)))
	return p.Write(w, r, http.StatusOK, Text.Topology, body, "topology.js")
}

// controls say what of the topology is shown. A script follows them at once; without it there is a button.
func controls(a asked, view string) html.Part {
	pick := func(name, words, chosen string, all map[string]string, order ...string) html.Part {
		options := []html.Part{html.ID("topology-" + name), html.Attr("name", name)}
		for _, value := range order {
			options = append(options, html.El("option", html.Attr("value", value), html.Flag("selected", value == chosen), html.Text(all[value])))
		}
		return html.El("div", html.El("label", html.Attr("for", "topology-"+name), html.Text(words)), html.El("select", options...))
	}
	other, words := a.path("table"), Text.Table
	if view == "table" {
		other, words = a.path(""), Text.Drawn
	}
	return html.El("form", html.ID("topology-view"), html.Class("row search"), html.Attr("role", "search"),
		pick("group", Text.Group, a.group, Text.Groups, "pool", "datacenter", "class"),
		pick("colour", Text.Colour, a.colour, Text.Colours, "cpu", "memory", "health"),
		html.El("div", html.El("label", html.Attr("for", "q"), html.Text(Text.Find)), html.El("input", html.ID("q"), html.Attr("name", "q"),
			html.Attr("type", "search"), html.Attr("placeholder", Text.FindMore), html.Attr("value", a.words))),
		html.If(view != "", parts.Hidden("view", view)), html.If(a.job != "", parts.Hidden("job", a.job)),
		html.El("button", html.Attr("data-scripted", "hide"), html.Text(Text.Show)),
		html.El("a", html.ID("topology-table"), html.Href(other), html.Text(words)))
}

// legend says what the colours and shapes mean; a script shows the part of what is coloured by.
func legend(a asked) html.Part {
	steps := make([]html.Part, 0, 5)
	for i, words := range []string{"0 %", "1–34 %", "35–64 %", "65–89 %", "90–100 %"} {
		steps = append(steps, html.El("li", html.Class("heat h"+strconv.Itoa(i)), html.Text(words)))
	}
	states := make([]html.Part, 0, 6)
	for _, s := range [][3]string{ // as the script draws them
		{"r", "ok", "■"},
		{"i", "warn", "□"},
		{"d", "prog", "╱"},
		{"a", "lost", "◆"},
		{"x", "bad", "✖"},
		{"b", "idle", "●"},
	} {
		states = append(states, html.El("li", parts.Toned(s[1]+" shaped", s[2]+" "+Text.States[s[0]])))
	}
	return html.El("div", html.ID("topology-legend"), html.Class("legend"), html.Attr("data-colour", a.colour), html.Attr("role", "group"),
		html.Attr("aria-label", Text.Legend), html.El("ul", append([]html.Part{html.Class("steps")}, steps...)...), html.El("ul", states...))
}

// picked says what runs on the node; what cannot be read of it is said in its place.
func (p *Pages) picked(r *http.Request, id string) html.Part {
	if id == "" {
		return html.El("p", html.Class("muted"), html.Text(Text.PickMore))
	}
	var n drover.NodeListStub
	var allocations []drover.AllocationListStub
	query := url.Values{"per_page": {strconv.Itoa(shown)}, "reverse": {"true"}, "stale": {"true"}, "filter": {`ClientStatus == "running"`}}
	err := p.Ask(r, api("node", id)+"?stale=true", &n)
	if err == nil {
		err = p.Ask(r, api("node", id, "allocations")+"?"+query.Encode(), &allocations)
	}
	if err != nil {
		return p.Failed(r, err)
	}
	return html.Group(head(&n), p.allocations(r, allocations),
		html.If(len(allocations) == shown, html.El("p", html.Class("muted"), html.Text(fmt.Sprintf(Text.Newest, shown)))),
		html.El("p", html.El("a", html.Href(Path(id)), html.Text(Text.NodePage))))
}

// topologyTable is the twin of the map: the groups, and a page of the nodes that have all of the words.
func (p *Pages) topologyTable(w http.ResponseWriter, r *http.Request, a asked) error {
	var t cluster.Topology
	err := p.Ask(r, api("topology")+"?stale=true", &t)
	if err != nil {
		return p.Show(w, r, Text.Topology, html.Part{}, err)
	}
	groups, err := t.Groups(a.group)
	if err != nil {
		return p.Show(w, r, Text.Topology, html.Part{}, err)
	}
	rows := make([]html.Part, 0, len(groups))
	for _, g := range groups {
		rows = append(rows, parts.Row(html.Name(cmp.Or(g.Name, Text.Nameless)), html.Int(g.Nodes), html.Int(g.States[cluster.NodeReady]),
			html.Int(g.Nodes-g.States[cluster.NodeReady]), html.Int(g.Allocations), html.Text(fmt.Sprintf("%d %% (%d %%)", g.CPU, g.MostCPU)),
			html.Text(fmt.Sprintf("%d %% (%d %%)", g.Memory, g.MostMemory))))
	}
	label := Text.Groups[a.group]
	marked, said, err := p.runsOn(r, a)
	if err != nil {
		said = p.Failed(r, err)
	}
	body := html.Group(controls(a, "table"), said, parts.Live("topology", []string{drover.TopicNode, drover.TopicAllocation}, 0,
		html.El("h2", html.Text(label)), parts.Table(label, Text.GroupColumns, rows, Text.NoNodes), nodeTable(r, &t, a, marked)))
	return p.Show(w, r, Text.Topology, body, nil)
}

// nodeTable has a page of the nodes, in the order of the topology; with marks only of those that have one.
func nodeTable(r *http.Request, t *cluster.Topology, a asked, marked map[string]bool) html.Part {
	found := t.Find(a.words, func(letter byte) string { return Text.States[string(letter)] })
	if marked != nil {
		found = slices.DeleteFunc(found, func(i int) bool { return !marked[t.IDs[i]] })
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("from")) // else the beginning
	from = min(max(from, 0), len(found))
	until := min(from+tablePage, len(found))
	rows := make([]html.Part, 0, tablePage)
	for _, i := range found[from:until] {
		group := map[string]string{
			"pool": t.Pools[t.Pool[i]], "datacenter": t.Datacenters[t.Datacenter[i]], "class": t.Classes[t.Class[i]],
		}[a.group]
		rows = append(rows, parts.Row(parts.Link(Path(t.IDs[i]), t.Names[i]), html.Name(cmp.Or(group, Text.Nameless)),
			parts.Status(Text.States[string(t.States[i])]), html.Int(t.Allocations[i]), html.Text(fmt.Sprintf("%d %%", t.CPU[i])),
			html.Text(fmt.Sprintf("%d %%", t.Memory[i]))))
	}
	count := html.If(len(rows) > 0, html.El("p", html.Class("muted"), html.Text(fmt.Sprintf(Text.NodesOf, from+1, until, len(found)))))
	return html.Group(html.El("h2", html.Text(Text.Picked)), count, parts.Table(Text.Picked, Text.NodeColumns, rows, Text.Nothing),
		html.El("div", html.Class("row pager"),
			html.If(from > 0, html.El("a", html.Href(a.path("table")), html.Text(Text.FirstPage))),
			html.If(until < len(found), html.El("a", html.Href(a.path("table").With("from", strconv.Itoa(until))), html.Text(Text.NextPage)))))
}

// head is what matters most of a node.
func head(n *drover.NodeListStub) html.Part {
	return parts.Facts(parts.Fact(Text.Status, parts.Status(drover.NodeCondition(n.Status, n.SchedulingEligibility, n.Drain))),
		parts.Fact(Text.Picked, parts.Link(Path(n.ID), n.Name)),
		parts.Fact(Text.Pool, html.Name(n.NodePool)), parts.Fact(Text.Datacenter, html.Name(n.Datacenter)),
		parts.Fact(Text.Class, html.Name(cmp.Or(n.NodeClass, parts.None))), parts.Fact(Text.ID, html.Text(n.ID)))
}

// sorted are a map's keys in order.
func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, strings.Compare)
	return keys
}
