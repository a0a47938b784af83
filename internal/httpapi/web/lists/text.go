package lists

// text is every text of the lists, in one place for translators.
var text = struct {
	Jobs, Allocations, Nodes, RunJob, Search, SearchMore, Status, AnyStatus, Find, All, Count, FirstPage, NextPage, NoJobs, NoNodes,
	NoAllocations, Topology, Executions, ExecutionsMore, NoExecutions, Runs, Exited, Silent string

	Counts []string
}{
	Jobs: "Jobs", Allocations: "Allocations", Nodes: "Nodes", RunJob: "Run a job",
	Search: "Search", SearchMore: "words of a name, an id …", Status: "Status", AnyStatus: "any", Find: "Find", All: "Show all",
	Count: "%d found", FirstPage: "First page", NextPage: "Next page", Topology: "Topology",
	NoJobs:        "No job is here: none yet, none that was looked for, or none that your token may see. `drover job run FILE` runs one.",
	NoNodes:       "No node is here: none yet, none that was looked for, or none that your token may see.",
	NoAllocations: "No allocation is here: none yet, none that was looked for, or none that your token may see.",

	Executions: "Executions", ExecutionsMore: "What runs, and what ended in the last 15 minutes, in the runners that your token may see.",
	NoExecutions: "No execution is here: none yet, none that was looked for, or none that your token may see. " +
		"`drover run ENVIRONMENT -- COMMAND` starts one.",
	Runs: "runs", Exited: "exit %d", Silent: "What these servers have is not here: they did not answer",

	Counts: []string{"running", "starting", "queued", "failed", "lost", "unknown", "complete"},
}

// column is one of a table; by is what the API sorts by for it, "" if it cannot be sorted by it.
type column struct{ words, by string }

var (
	jobColumns = []column{
		{"Job", "name"},
		{"Status", "status"},
		{"Allocations", ""},
		{"Namespace", "namespace"},
		{"Type", "type"},
		{"Priority", "priority"},
		{"Submitted", "submitted"},
	}
	allocationColumns = []column{
		{"Id", ""},
		{"Name", "name"},
		{"Status", "status"},
		{"Wanted", "wanted"},
		{"Job", "job"},
		{"Node", "node"},
		{"Made", "created"},
	}
	nodeColumns = []column{
		{"Node", "name"},
		{"Status", "status"},
		{"Pool", "pool"},
		{"Datacenter", "datacenter"},
		{"Class", "class"},
		{"Id", ""},
		{"Version", "version"},
	}
	executionColumns = []column{
		{"Execution", ""},
		{"Status", "status"},
		{"Started", "started"},
		{"Took", "wall"},
		{"CPU", "cpu"},
		{"Memory", "memory"},
		{"Environment", "environment"},
		{"Runner", "runner"},
		{"Command", ""},
	}
	executionFields = []column{
		{"Environment", "environment"},
		{"Runner", "runner"},
		{"Exit code, or nonzero", "exit"},
		{"Still ran (5m ago, or a time)", "since"},
		{"Started by then", "until"},
	}
)
