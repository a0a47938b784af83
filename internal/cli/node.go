package cli

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
)

func (a *App) nodeCommand() *cobra.Command {
	pool := group("pool", "Group nodes", a.poolListCommand(), a.poolApplyCommand(), a.poolDeleteCommand())
	return group("node", "Look at nodes, and take them out of use", a.nodeStatusCommand(), a.nodeEligibilityCommand(), a.nodeDrainCommand(), pool)
}

type nodeStatusFlags struct {
	output
	stats, self bool
}

func (a *App) nodeStatusCommand() *cobra.Command {
	f := &nodeStatusFlags{}
	c := leaf("status [NODE]", "List nodes, or show one with its drivers and allocations", 0, 1, func(ctx context.Context, args []string) error {
		c, err := a.asks()
		if err != nil {
			return err
		}
		if len(args) == 0 && !f.self {
			return a.nodeList(ctx, c, f)
		}
		id := ""
		if f.self {
			id, err = c.localNode(ctx)
		} else {
			id = args[0]
		}
		if err != nil {
			return err
		}
		return a.nodeStatus(ctx, c, f, id)
	})
	with(c, "Shows a node (by the beginning of its id, or its name): its size and what is taken of it, its drivers and what they lack,\nwhat happened to it, and its allocations.",
		"drover node status\ndrover node status -self -stats\ndrover node status 91c3")
	f.bind(c.Flags())
	c.Flags().BoolVar(&f.stats, "stats", false, "show what the machine uses now")
	c.Flags().BoolVar(&f.self, "self", false, "the agent's own node")
	return c
}

func (a *App) nodeList(ctx context.Context, c *api, f *nodeStatusFlags) error {
	var list []*drover.NodeListStub
	if _, err := c.get(ctx, "/v1/nodes", nil, &list); err != nil {
		return err
	}
	if done, err := f.data(a.Out, list); done {
		return err
	}
	var rows [][]string
	for _, n := range list {
		rows = append(rows, []string{f.id(n.ID), n.Name, n.Datacenter, n.NodePool, n.NodeClass, yes(n.Drain), n.SchedulingEligibility, n.Status})
	}
	return table(a.Out, "There are no nodes.", "ID|Name|Datacenter|Pool|Class|Draining|Eligibility|Status", rows)
}

func (a *App) nodeStatus(ctx context.Context, c *api, f *nodeStatusFlags, prefix string) error {
	n, err := c.node(ctx, prefix)
	if err != nil {
		return err
	}
	if done, err := f.data(a.Out, n); done {
		return err
	}
	var allocs []*drover.Allocation
	if _, err := c.get(ctx, "/v1/node/"+n.ID+"/allocations", c.anywhere(), &allocs); err != nil {
		return err
	}
	for _, part := range []func() error{
		func() error { return a.nodeFacts(n) },
		func() error { return a.nodeDrivers(n) },
		func() error { return a.nodeRoom(n, allocs) },
		func() error {
			if !f.stats {
				return nil
			}
			return a.nodeStats(ctx, c, n.ID)
		},
		func() error { return a.nodeEvents(n) },
		func() error { return a.nodeAttributes(n, f.verbose) },
		func() error {
			section(a.Out, "Allocations")
			var stubs []*drover.AllocationListStub
			for _, v := range allocs {
				stubs = append(stubs, v.Stub())
			}
			newestFirst(stubs)
			return a.allocTable(&f.output, stubs)
		},
	} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

func (a *App) nodeFacts(n *drover.Node) error {
	drain := ""
	if n.DrainStrategy != nil {
		drain = "since " + stamp(n.DrainStrategy.StartedAt)
		if !n.DrainStrategy.ForceDeadline.IsZero() {
			drain += ", by force at " + stamp(n.DrainStrategy.ForceDeadline)
		}
	}
	at := n.Attributes
	return facts(a.Out, "ID", n.ID, "Name", n.Name, "Datacenter", n.Datacenter, "Node pool", n.NodePool, "Class", n.NodeClass,
		"Status", n.Status, "Description", n.StatusDescription, "Eligibility", n.SchedulingEligibility, "Draining", drain, "Address", n.HTTPAddr,
		"System", at["os.name"]+" "+at["os.version"]+", "+at["kernel.name"]+" "+at["kernel.version"]+", "+at["cpu.arch"],
		"Drover", at["drover.version"], "Meta", pairs(n.Meta))
}

func (a *App) nodeDrivers(n *drover.Node) error {
	section(a.Out, "Drivers")
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(n.Drivers)) {
		d := n.Drivers[name]
		rows = append(rows, []string{name, yes(d.Detected), yes(d.Healthy), d.HealthDescription})
	}
	if err := table(a.Out, "There are none.", "Name|Found|Healthy|Remarks", rows); err != nil {
		return err
	}
	return nil
}

func (a *App) nodeRoom(n *drover.Node, allocs []*drover.Allocation) error {
	total, used := n.Total(), drover.Capacity{}
	for _, v := range allocs {
		if v.HoldsResources() && v.AllocatedResources != nil {
			used = used.Add(v.AllocatedResources.Used())
		}
	}
	section(a.Out, "Room")
	return table(a.Out, "", "|CPU|Memory|Disk", [][]string{
		{"allocated", fmt.Sprintf("%d MHz", used.CPU), bytesText(float64(used.MemoryMB) * (1 << 20)), bytesText(float64(used.DiskMB) * (1 << 20))},
		{"of", fmt.Sprintf("%d MHz", total.CPU), bytesText(float64(total.MemoryMB) * (1 << 20)), bytesText(float64(total.DiskMB) * (1 << 20))},
	})
}

func (a *App) nodeStats(ctx context.Context, c *api, id string) error {
	var s drover.HostStats
	if _, err := c.get(ctx, "/v1/client/stats", url.Values{"node_id": {id}}, &s); err != nil {
		return fmt.Errorf("reading what the machine uses: %w", err)
	}
	section(a.Out, "Machine")
	busy := 0.0
	for _, cpu := range s.CPU {
		busy += cpu.TotalPercent / float64(len(s.CPU))
	}
	memory, disk := "", ""
	if s.Memory != nil {
		memory = bytesText(float64(s.Memory.Used)) + " of " + bytesText(float64(s.Memory.Total))
	}
	if d := s.AllocDirStats; d != nil {
		disk = bytesText(float64(d.Used)) + " of " + bytesText(float64(d.Size)) + " (" + d.Mountpoint + ")"
	}
	return facts(a.Out, "CPU", fmt.Sprintf("%.1f %% of %d cores", busy, len(s.CPU)), "Memory", memory, "Disk", disk,
		"Up for", span(time.Duration(s.Uptime)*time.Second))
}

func (a *App) nodeEvents(n *drover.Node) error {
	section(a.Out, "Events")
	var rows [][]string
	for _, e := range slices.Backward(n.Events) {
		rows = append(rows, []string{stamp(e.Timestamp), e.Subsystem, e.Message, pairs(e.Details)})
	}
	return table(a.Out, "There are none.", "Time|Part|Message|Details", rows)
}

func (a *App) nodeAttributes(n *drover.Node, verbose bool) error {
	if !verbose {
		return nil
	}
	section(a.Out, "Attributes")
	var list []string
	for _, k := range slices.Sorted(maps.Keys(n.Attributes)) {
		list = append(list, k, n.Attributes[k])
	}
	return facts(a.Out, list...)
}

func (a *App) poolListCommand() *cobra.Command {
	o := &output{}
	c := leaf("list", "List node pools", 0, 0, func(ctx context.Context, _ []string) error {
		c, err := a.asks()
		if err != nil {
			return err
		}
		var list []*struct {
			drover.NodePool
			NodeIdentityTTL time.Duration // answers have a number
		}
		if _, err := c.get(ctx, "/v1/node/pools", nil, &list); err != nil {
			return err
		}
		if done, err := o.data(a.Out, list); done {
			return err
		}
		var rows [][]string
		for _, p := range list {
			rows = append(rows, []string{p.Name, p.Description, strconv.FormatUint(p.ModifyIndex, 10)})
		}
		return table(a.Out, "There are none.", "Name|Description|Modified at", rows)
	})
	o.bind(c.Flags())
	return c
}

func (a *App) poolApplyCommand() *cobra.Command {
	p := &drover.NodePool{}
	var meta []string
	c := leaf("apply NAME", "Make or change a node pool", 1, 1, func(ctx context.Context, args []string) error {
		c, err := a.asks()
		if err != nil {
			return err
		}
		p.Name = args[0]
		if p.Meta, err = keyValues("-meta", meta); err != nil {
			return err
		}
		if err := c.put(ctx, "/v1/node/pools", nil, p, nil); err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.Out, "Node pool %q is applied.\n", p.Name)
		return err
	})
	c.Flags().StringVar(&p.Description, "description", "", "what it is for")
	c.Flags().StringArrayVar(&meta, "meta", nil, "metadata, key=value; can be repeated")
	return c
}

func (a *App) poolDeleteCommand() *cobra.Command {
	return leaf("delete NAME", "Delete a node pool that nothing uses", 1, 1, func(ctx context.Context, args []string) error {
		c, err := a.asks()
		if err != nil {
			return err
		}
		if _, err := c.call(ctx, "DELETE", "/v1/node/pool/"+url.PathEscape(args[0]), nil, nil, nil); err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.Out, "Node pool %q is deleted.\n", args[0])
		return err
	})
}
