package lists

// text is every text of the lists, in one place for translators.
var text = struct {
	Jobs, Allocations, Nodes, RunJob, Search, SearchMore, Status, AnyStatus, Find, All, Count, FirstPage, NextPage, NoJobs, NoNodes,
	NoAllocations, Topology string

	Counts []string
}{
	Jobs: "Jobs", Allocations: "Allocations", Nodes: "Nodes", RunJob: "Run a job",
	Search: "Search", SearchMore: "words of a name, an id …", Status: "Status", AnyStatus: "any", Find: "Find", All: "Show all",
	Count: "%d found", FirstPage: "First page", NextPage: "Next page", Topology: "Topology",
	NoJobs:        "No job is here: none yet, none that was looked for, or none that your token may see. `drover job run FILE` runs one.",
	NoNodes:       "No node is here: none yet, none that was looked for, or none that your token may see.",
	NoAllocations: "No allocation is here: none yet, none that was looked for, or none that your token may see.",

	Counts: []string{"running", "starting", "queued", "failed", "lost", "unknown", "complete"},
}

// column is one of a table; by is what the API sorts by for it, "" if it cannot be sorted by it.
type column struct{ words, by string }

var (
	jobColumns = []column{
		{"Job", "name"},
		{"Namespace", "namespace"},
		{"Type", "type"},
		{"Status", "status"},
		{"Priority", "priority"},
		{"Submitted (UTC)", "submitted"},
		{"Allocations", ""},
	}
	allocationColumns = []column{
		{"Id", ""},
		{"Name", "name"},
		{"Job", "job"},
		{"Status", "status"},
		{"Wanted", "wanted"},
		{"Node", "node"},
		{"Made (UTC)", "created"},
	}
	nodeColumns = []column{
		{"Node", "name"},
		{"Id", ""},
		{"Pool", "pool"},
		{"Datacenter", "datacenter"},
		{"Class", "class"},
		{"Status", "status"},
		{"Version", "version"},
	}
)
