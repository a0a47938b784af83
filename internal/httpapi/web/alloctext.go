package web

import "github.com/drover-project/drover/internal/httpapi/web/parts"

// allocText is every text of the pages of allocations, in one place for translators.
var allocText = struct {
	Parts, Allocation, Logs, Files, Terminal string

	State                                  map[string]string // by what is wanted and what is, as "run running"
	Actions                                map[string]action
	AllTasks, Signal, SignalMore, NoSignal string

	Stream, Show, Download, Earlier, Later, Filter, Follow, Pause, Lines, Lost, Silent, Ended, Paused, Gap, Skipped,
	Since, Go, Past, AtFound string

	Search, SearchAll, SearchStop, SearchMore, SearchClose, Searching, Found, FoundNone, FoundAll, FoundFirst, FoundSoFar string

	Open, Opening, Opened, Exited, Cut, NotRunning, TerminalMore string

	Root, FirstOf, Binary, Size, Mode, Modified string

	Tasks, Timeline, Resources, Ports, Placement, Chain, Network string

	Healthy, Unhealthy, Unjudged, Canary, Health string

	Previous, Next, FollowUp, PreemptedBy, Preempted, NoUsage, NoPorts, Evaluated, NoScores, HostAddress, Disk, DiskNow string

	TaskColumns, TimelineColumns, ResourceColumns, PortColumns, ScoreColumns, ChainColumns,
	FileColumns []string
}{
	Parts: "Parts of the allocation", Allocation: "Overview", Logs: "Logs", Files: "Files", Terminal: parts.Terminal,

	State: map[string]string{
		"run pending": "It is to run, and is being prepared.", "run running": "It runs, as it should.",
		"run complete": "It ran to its end.", "run failed": "It failed.",
		"run lost":    "It should run, but its node was lost.",
		"run unknown": "It should run, but its node does not answer: whether it does is not known.",

		"stop pending": "It is being stopped before it began.", "stop running": "It is being stopped.",
		"stop complete": "It was stopped, or is needed no more.", "stop failed": "It failed, and is not to run again.",
		"stop lost": "It was given up with its node.", "stop unknown": "It is to stop, but its node does not answer.",

		"evict pending": "It makes room for work with a higher priority.", "evict running": "It makes room for work with a higher priority.",
		"evict complete": "It made room for work with a higher priority.", "evict failed": "It failed while it made room for other work.",
		"evict lost":    "It was to make room for other work, and was lost with its node.",
		"evict unknown": "It is to make room for other work, but its node does not answer.",
	},
	Actions: map[string]action{
		"stop":    {"Stop", "The allocation is stopped.", "Stop the allocation %s? Its tasks end; another takes its place if the job wants one."},
		"restart": {"Restart", "The restart is under way.", "Restart %s? What runs there ends, and begins again on the same node."},
		"signal":  {"Signal", "The signal is sent.", "Send a signal to %s? What it does is up to the program: many end."},
	},
	AllTasks: "all tasks", Signal: "Signal", SignalMore: "such as SIGHUP", NoSignal: "signal: it is empty; give a name such as SIGHUP",

	Stream: "Stream", Show: "Show", Download: "Download", Earlier: "Earlier", Later: "Later", Filter: "Only lines with",
	Follow: "Follow", Pause: "Pause", Lines: "Lines: %d, %s MiB", Lost: "The connection is lost. Trying again.",
	Silent: "No sign of life for 2 seconds.", Ended: "The end: the task writes nothing more.", Paused: "paused, new lines: %d",
	Gap: "some output is missing here, since the connection was lost", Skipped: "some output is missing here: it is kept no longer",
	Since: "From", Go: "Go there", Past: "since %s", AtFound: "around the line that was found",

	Search: "Search", SearchAll: "Search all of the log", SearchStop: "Stop", SearchMore: "Search on", SearchClose: "Close",
	Searching: "Searching. Lines found: %d",
	Found:     "Lines that were found", FoundNone: "No line has this text.", FoundAll: "Lines found: %d. All of the log was searched.",
	FoundFirst: "Lines found: %d. There may be more.", FoundSoFar: "Lines found: %d. The search was stopped.",

	Open: "Open", Opening: "opening", Opened: "open", Exited: "It ended with code %d.",
	Cut:          parts.Cut,
	NotRunning:   "The allocation does not run: there is nothing to open a terminal in.",
	TerminalMore: "The program ends when this page is left. In a shell of your own:",

	Root: "allocation", FirstOf: "The first %d of %d.", Binary: "This is not text. Download it to see what it is.",
	Size: "Size", Mode: "Mode", Modified: "Changed",

	Tasks: "Tasks", Timeline: "Timeline", Resources: "Resources", Ports: "Ports", Placement: "Why on this node", Chain: "Rescheduled",
	Network: "Address",

	Healthy: "healthy", Unhealthy: "unhealthy", Unjudged: "not judged yet", Canary: "canary", Health: "Health in its deployment",

	Previous: "Replaces", Next: "Replaced by", FollowUp: "To be tried again by evaluation", PreemptedBy: "Made room for",
	Preempted: "Has the place of", NoUsage: "What is used now is not known",
	NoPorts: "It has no ports.", Evaluated: "%d nodes were looked at, %d of them left out, %d were full.",
	NoScores:    "The scores of its candidates are not kept.",
	HostAddress: "that of its node", Disk: "All tasks together may have %d MiB on disk.", DiskNow: "They have %s.",

	TaskColumns:     []string{"Task", "State", "Restarts", "Started", "Ended", "Output"},
	TimelineColumns: []string{"Time", "After", "Task", "Event", "What"},
	ResourceColumns: []string{"Task", "CPU", "CPU now", "Memory", "Memory now", "Devices"},
	PortColumns:     []string{"Port", "Address", "Inside"},
	ScoreColumns:    []string{"Node", "Score", "Made of"},
	ChainColumns:    []string{"Time", "Allocation", "Node", "Waited"},
	FileColumns:     []string{"Name", "Size", "Mode", "Changed"},
}
