package nodeview

import (
	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
)

// Words are what an action's button says, what is said after it, and what is asked before with the node's name in %s; "" asks nothing.
type Words struct{ Button, Done, Sure string }

// Text is every text of the pages of nodes, in one place for translators.
var Text = struct {
	Topology, TopologyMore, Map, Group, Colour, Find, FindMore, Show, Table, Drawn, NeedsScript, Picked, PickMore, MapKeys, MapNode, MapAll,
	MapFound, MapLost, Legend, Tools, ZoomIn, ZoomOut, ZoomFit, Nameless, NoNodes, Nothing, NextPage, FirstPage, NodePage, NodesOf,
	Marks, NoMarks string

	Groups, Colours, States map[string]string

	Status, Pool, Datacenter, Class, ID, Version, Address, Allocations, Newest, CPU, Memory, Disk, Now, NoStats, Held, Free, Resources,
	Drivers, Attributes, Events, Metadata, MetaMore, Own, Key, Value, Set, Remove, Drain, DrainMore, Deadline, DeadlineMore, NoDeadline string

	DrainPlan, DrainPlanNone, DrainPlanOthers, DrainPlanUnknown string

	Fates, FateCounts map[string]string

	IgnoreSystem, MarkEligible, Draining, Until, NoEnd, Waits, Eligibility, NoAction, BadForm, NoKey, Healthy, Unhealthy, Uptime, Load string

	Actions map[string]Words

	GroupColumns, NodeColumns, DrainColumns, DriverColumns, MetaColumns, EventColumns, StatColumns []string
}{
	Topology: "Topology", TopologyMore: "All nodes, each a cell.", Map: "Map of all nodes", Group: "Group by", Colour: "Colour by",
	Find: "Find", FindMore: "words of a name, id, pool, class or state", Show: "Show", Table: "As a table", Drawn: "As a map",
	NeedsScript: "The map needs JavaScript. The table shows the same.",
	Picked:      "Node", PickMore: "Pick a node to see what runs there.",
	MapKeys: "Arrow keys go from node to node, Page Up and Page Down from group to group, Home and End to the first and the last. " +
		"Enter picks. Plus, minus and 0 zoom, Shift with an arrow moves the map.",
	MapNode:  "{name}: {state}, {group}, CPU {cpu} %, memory {memory} %, {allocations} allocations",
	MapAll:   "Nodes: {nodes}. Groups: {groups}.",
	MapFound: "{found} of {nodes} nodes are found.",
	Marks:    "%d allocations on %d nodes, which are marked, are of the job",
	NoMarks:  "Show all nodes alike",
	MapLost:  "The agent does not answer: what is shown is not the newest. It is asked again.",
	Legend:   "Legend", Tools: "Zoom", ZoomIn: "Zoom in", ZoomOut: "Zoom out", ZoomFit: "All", Nameless: "(none)",
	NoNodes: "No node is there yet.", Nothing: "There is nothing here yet.", NextPage: "Next page", FirstPage: "First page",
	NodePage: "All about this node", NodesOf: "%d to %d of %d nodes",

	Groups:  map[string]string{"pool": "Pool", "datacenter": "Datacenter", "class": "Class"},
	Colours: map[string]string{"cpu": "CPU held", "memory": "Memory held", "health": "Health"},
	States: map[string]string{
		"r": "ready", "i": "ineligible", "d": "draining", "a": "disconnected", "x": "down", "b": "initializing",
	},

	Status: "Status", Pool: "Pool", Datacenter: "Datacenter", Class: "Class", ID: "Id", Version: "Version", Address: "Address",
	Allocations: "Allocations", Newest: "The newest %d.", CPU: "CPU", Memory: "Memory", Disk: "Disk", Now: "Now",
	NoStats: "What it uses now is not known", Held: "%s of %s", Free: "free", Resources: "Resources", Drivers: "Drivers",
	Attributes: "Attributes", Events: "Events",
	Metadata: "Metadata", MetaMore: "What is set here holds over the node's own, and jobs may ask for it in constraints.",
	Own: "the node's own", Key: "Key", Value: "Value", Set: "Set", Remove: "Remove",
	Drain: "Drain", DrainMore: "Its allocations move to other nodes, and it takes no new ones.",
	Deadline: "Deadline", DeadlineMore: "as 1h or 30m: what is left then is stopped; empty for none", NoDeadline: "none",
	IgnoreSystem: "Leave system jobs running", MarkEligible: "It may take allocations again",
	Draining: "Draining", Until: "until", NoEnd: "without a deadline", Waits: "%d allocations are still there.",
	Eligibility: "Eligibility", NoAction: "There is no such action", BadForm: parts.BadForm,
	NoKey: "key: it is empty; say which one to set", Healthy: "healthy", Unhealthy: "unhealthy", Uptime: "Uptime",

	Actions: map[string]Words{
		"drain": {
			"Drain", "The node is drained.",
			"Drain the node %s? Its allocations are stopped here, and placed elsewhere where there is room.",
		},
		"cancel":     {"Stop draining", "The node is not drained any more.", ""},
		"eligible":   {"Make eligible", "The node may take allocations.", ""},
		"ineligible": {"Make ineligible", "The node takes no new allocations.", ""},
		"meta":       {"Set", "The metadata is set.", ""},
		"unset": {
			"Remove", "The metadata is removed.",
			"Remove metadata of the node %s? Jobs that ask for it in a constraint find no place here any more.",
		},
	},

	GroupColumns: []string{"Group", "Nodes", "Ready", "Not ready", "Allocations", "CPU held (most)", "Memory held (most)"},
	NodeColumns:  []string{"Node", "Group", "Status", "Allocations", "CPU held", "Memory held"},
	DrainColumns: []string{"Allocation", "Job", "What becomes of it", "Where, or why not"},

	DrainPlan: "What would become of its allocations, as things are now", DrainPlanNone: "Nothing runs here.",
	DrainPlanOthers:  "%d are of jobs that your token may not read",
	DrainPlanUnknown: "What would become of its allocations is not known",
	Fates: map[string]string{
		drover.DrainMoves: "moves", drover.DrainWaits: "finds no room, and waits", drover.DrainEnds: "ends here, by the deadline",
		drover.DrainStays: "stays",
	},
	FateCounts: map[string]string{
		drover.DrainMoves: "%d would move", drover.DrainWaits: "%d would find no room", drover.DrainEnds: "%d would end here",
		drover.DrainStays: "%d would stay",
	},

	DriverColumns: []string{"Driver", "Health", "What it says"},
	MetaColumns:   []string{"Key", "Value", ""},
	EventColumns:  []string{"Time", "Part", "What"},
	StatColumns:   []string{"What", "Used now", ""},
}
