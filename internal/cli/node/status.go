package node

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/cli/view"
	"github.com/drover-project/drover/usage"
)

// StatusFlags say what of a node is shown, and how. "drover status" makes one from its own Output.
type StatusFlags struct {
	term.Output
	// stats asks the node itself, so it fails for one that is down; self is the node of the agent asked.
	stats, self bool
	// Of a list: how many allocations run on each, what system each has, or ids alone.
	allocs, os, quiet bool
	// Of a node: only what it is, and its allocations.
	short bool
	page  term.Page
}

// statusCommand is "drover node status". Without a node it lists all of them, as the API orders them.
func statusCommand(app *term.App) *cobra.Command {
	f := &StatusFlags{}
	run := func(ctx context.Context, c *api.Client, args []string) error {
		if len(args) == 0 && !f.self {
			return list(ctx, app, c, f)
		}
		n, err := nodeOf(ctx, c, args, f.self)
		if err != nil {
			return err
		}
		return show(ctx, app, c, f, n)
	}
	c := term.NomadCommand(app, "status [NODE]", "List nodes, or show one with its drivers and allocations", 0, 1, run)
	term.Describe(c, `Shows a node (by the beginning of its id, or its name): its size and what is taken of it, its drivers and what they lack,
its devices, what happened to it, and its allocations.`,
		`drover node status
drover node status -search gpu -status down,draining -sort -modified -per-page 50
drover node status -self -stats
drover node status 91c3`)
	f.Bind(c.Flags())
	c.Flags().BoolVar(&f.stats, "stats", false, "show what the machine uses now")
	c.Flags().BoolVar(&f.self, "self", false, "the agent's own node")
	c.Flags().BoolVar(&f.allocs, "allocs", false, "of a list: how many allocations run on each")
	c.Flags().BoolVar(&f.os, "os", false, "of a list: the operating system of each")
	c.Flags().BoolVar(&f.quiet, "quiet", false, "of a list: ids only")
	c.Flags().BoolVar(&f.short, "short", false, "of a node: only what it is, and its allocations")
	f.page.BindSearch(c.Flags(), `NodeClass == "large"`, "ready, ineligible, draining, down, disconnected, initializing",
		"name, pool, datacenter, class, status, version or modified")
	return c
}

// list prints all nodes in one table. Errors: the API's.
func list(ctx context.Context, app *term.App, c *api.Client, f *StatusFlags) error {
	l := f.listing()
	l.Page = &f.page
	if f.quiet {
		l.None, l.Heading, l.Row = "", "", func(n *drover.NodeListStub) []string { return []string{f.ID(n.ID)} }
	}
	if f.os {
		l.Query = url.Values{"os": {"true"}}
		l = with(l, "OS", func(n *drover.NodeListStub) string { return n.Attributes["os.name"] })
	}
	if f.allocs {
		counts, err := running(ctx, c)
		if err != nil {
			return err
		}
		l = with(l, "Running", func(n *drover.NodeListStub) string { return strconv.Itoa(counts[n.ID]) })
	}
	return term.List(ctx, app, &f.Output, l)
}

// with adds a column at the end.
func with(l term.Listing[*drover.NodeListStub], heading string, cell func(*drover.NodeListStub) string) term.Listing[*drover.NodeListStub] {
	row := l.Row
	l.Heading += "|" + heading
	l.Row = func(n *drover.NodeListStub) []string { return append(row(n), cell(n)) }
	return l
}

// running counts the allocations that run on each node.
func running(ctx context.Context, c *api.Client) (map[string]int, error) {
	var list []*drover.AllocationListStub
	q := c.Anywhere()
	q.Set("filter", `ClientStatus == "running"`)
	if _, err := c.Get(ctx, "/v1/allocations", q, &list); err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, a := range list {
		counts[a.NodeID]++
	}
	return counts, nil
}

// listing is how nodes are listed.
func (f *StatusFlags) listing() term.Listing[*drover.NodeListStub] {
	return term.Listing[*drover.NodeListStub]{
		Path: "/v1/nodes", None: "There are no nodes.", Heading: "ID|Name|Datacenter|Pool|Class|Draining|Eligibility|Status",
		Row: func(n *drover.NodeListStub) []string {
			return []string{f.ID(n.ID), n.Name, n.Datacenter, n.NodePool, n.NodeClass, term.YesNo(n.Drain), n.SchedulingEligibility, n.Status}
		},
	}
}

// Show prints the node whose id begins with prefix. Errors: the API's; NotFound; Invalid when several begin so.
func Show(ctx context.Context, app *term.App, c *api.Client, f *StatusFlags, prefix string) error {
	n, err := c.Node(ctx, prefix)
	if err != nil {
		return err
	}
	return show(ctx, app, c, f, n)
}

// show prints one node, part after part; -json and -t print the node alone. Its allocations are those of all
// namespaces unless one was chosen. Errors: the API's.
func show(ctx context.Context, app *term.App, c *api.Client, f *StatusFlags, n *drover.Node) error {
	if done, err := f.Data(app.Out, n); done {
		return err
	}
	var allocs []*drover.Allocation
	if _, err := c.Get(ctx, "/v1/node/"+n.ID+"/allocations", c.Anywhere(), &allocs); err != nil {
		return err
	}
	for _, part := range []func() error{
		func() error { return showFacts(app, n) },
		func() error {
			if f.short {
				return nil
			}
			return f.showMachine(ctx, app, c, n, allocs)
		},
		func() error {
			term.Section(app.Out, "Allocations")
			// This route answers with whole allocations, from which the room was counted; the table takes stubs.
			var stubs []*drover.AllocationListStub
			for _, v := range allocs {
				stubs = append(stubs, v.Stub())
			}
			view.SortNewestFirst(stubs)
			return view.Allocations(app, &f.Output, stubs)
		},
	} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// showMachine prints what the node's machine has and does.
func (f *StatusFlags) showMachine(ctx context.Context, app *term.App, c *api.Client, n *drover.Node, allocs []*drover.Allocation) error {
	if err := showDrivers(app, n); err != nil {
		return err
	}
	if err := showDevices(app, n, allocs); err != nil {
		return err
	}
	if err := showRoom(app, n, allocs); err != nil {
		return err
	}
	if f.stats {
		if err := showStats(ctx, app, c, n.ID); err != nil {
			return err
		}
	}
	if err := showEvents(app, n); err != nil {
		return err
	}
	return showAttributes(app, n, f.Verbose)
}

// showFacts prints what the node is and how the scheduler may use it. A drain is shown with the time at which it
// forces.
func showFacts(app *term.App, n *drover.Node) error {
	drain := ""
	if n.DrainStrategy != nil {
		drain = "since " + term.Stamp(n.DrainStrategy.StartedAt)
		if !n.DrainStrategy.ForceDeadline.IsZero() {
			drain += ", by force at " + term.Stamp(n.DrainStrategy.ForceDeadline)
		}
	}
	at := n.Attributes
	return term.Facts(app.Out, "ID", n.ID, "Name", n.Name, "Datacenter", n.Datacenter, "Node pool", n.NodePool, "Class", n.NodeClass,
		"Status", n.Status, "Description", n.StatusDescription, "Eligibility", n.SchedulingEligibility, "Draining", drain, "Address", n.HTTPAddr,
		"System", at["os.name"]+" "+at["os.version"]+", "+at["kernel.name"]+" "+at["kernel.version"]+", "+at["cpu.arch"],
		"Drover", at["drover.version"], "Meta", term.Pairs(n.Meta))
}

// showDrivers prints what each driver found; its remarks say what is missing, or held by weaker means.
func showDrivers(app *term.App, n *drover.Node) error {
	term.Section(app.Out, "Drivers")
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(n.Drivers)) {
		d := n.Drivers[name]
		rows = append(rows, []string{name, term.YesNo(d.Detected), term.YesNo(d.Healthy), d.HealthDescription})
	}
	if err := term.Table(app.Out, "There are none.", "Name|Found|Healthy|Remarks", rows); err != nil {
		return err
	}
	return nil
}

// showRoom prints what allocations hold of the node's size. Reserved resources are not part of that size. What tasks
// really use is not counted: the scheduler places by what they asked for.
func showRoom(app *term.App, n *drover.Node, allocs []*drover.Allocation) error {
	total, used := n.Total(), drover.Capacity{}
	for _, v := range allocs {
		if v.HoldsResources() && v.AllocatedResources != nil {
			used = used.Add(v.AllocatedResources.Used())
		}
	}
	term.Section(app.Out, "Room")
	return term.Table(app.Out, "", "|CPU|Memory|Disk", [][]string{
		{
			"allocated", fmt.Sprintf("%d MHz", used.CPU), term.Bytes(float64(used.MemoryMB) * (1 << 20)),
			term.Bytes(float64(used.DiskMB) * (1 << 20)),
		},
		{"of", fmt.Sprintf("%d MHz", total.CPU), term.Bytes(float64(total.MemoryMB) * (1 << 20)), term.Bytes(float64(total.DiskMB) * (1 << 20))},
	})
}

// showStats prints what the machine uses now, as its agent measures it. CPU is the mean over all cores. Errors: the
// API's, Unavailable if the node's agent is not connected.
func showStats(ctx context.Context, app *term.App, c *api.Client, id string) error {
	var s usage.HostStats
	if _, err := c.Get(ctx, "/v1/client/stats", url.Values{"node_id": {id}}, &s); err != nil {
		return fmt.Errorf("reading what the machine uses: %w", err)
	}
	term.Section(app.Out, "Machine")
	busy := 0.0
	for _, cpu := range s.CPU {
		busy += cpu.TotalPercent / float64(len(s.CPU))
	}
	memory, disk := "", ""
	if s.Memory != nil {
		memory = term.Bytes(float64(s.Memory.Used)) + " of " + term.Bytes(float64(s.Memory.Total))
	}
	if d := s.AllocDirStats; d != nil {
		disk = term.Bytes(float64(d.Used)) + " of " + term.Bytes(float64(d.Size)) + " (" + d.Mountpoint + ")"
	}
	return term.Facts(app.Out, "CPU", fmt.Sprintf("%.1f %% of %d cores", busy, len(s.CPU)), "Memory", memory, "Disk", disk,
		"Up for", term.Span(time.Duration(s.Uptime)*time.Second))
}

// showEvents prints what happened to the node, newest first; the server keeps the last few.
func showEvents(app *term.App, n *drover.Node) error {
	term.Section(app.Out, "Events")
	var rows [][]string
	for _, e := range slices.Backward(n.Events) {
		rows = append(rows, []string{term.Stamp(e.Timestamp), e.Subsystem, e.Message, term.Pairs(e.Details)})
	}
	return term.Table(app.Out, "There are none.", "Time|Part|Message|Details", rows)
}

// showAttributes prints the fingerprinted attributes, against which constraints are checked. They are many, so they
// need -verbose.
func showAttributes(app *term.App, n *drover.Node, verbose bool) error {
	if !verbose {
		return nil
	}
	term.Section(app.Out, "Attributes")
	var list []string
	for _, k := range slices.Sorted(maps.Keys(n.Attributes)) {
		list = append(list, k, n.Attributes[k])
	}
	return term.Facts(app.Out, list...)
}
