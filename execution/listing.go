package execution

import "time"

// Listed is an execution in a list of those of many runners.
type Listed struct {
	Execution        // without variables, with at most a few KB of the command
	Namespace string `json:"namespace"`
	// Environment is its id, without its namespace.
	Environment string `json:"environment"`
	// StartedAt is zero while it runs if it was started by a server that has restarted since.
	StartedAt time.Time `json:"startedAt,omitzero"`
	EndedAt   time.Time `json:"endedAt,omitzero"` // zero while it runs
}

// ListQuery says which executions are wanted, and in which order.
type ListQuery struct {
	Environment string   // id or key; "" = of all
	Runner      string   // "" = of all
	Statuses    []string // StatusRunning, StatusEnded or a Cause, one of them; none = all
	Exit        string   // an exit code, or ExitNonzero; "" = all, and those that run
	Words       []string // each must be in the id, the command, the runner or the environment; the case does not matter
	// Since and Until keep those that ran between them, for whatever part of it; zero = without bound.
	Since, Until time.Time
	Sort         string // one of ListSorts, or one with - before it for the reverse; "" = "-started"
	After        string // Next of the page before; "" = the first one
	PerPage      int
}

// What a ListQuery asks for in words.
const (
	StatusRunning = "running"
	StatusEnded   = "ended"
	ExitNonzero   = "nonzero"
)

// ListPage is one page of a list of executions.
type ListPage struct {
	Items []Listed
	Next  string // where the next page begins; "" = there is none
	Total int    // of what the query keeps, on all pages
	// Silent are the servers that did not answer: what runs and ended there is not in the list.
	Silent []string
}

// MaxListPage is how many executions a page has at most.
const MaxListPage = 1_000

// ListSorts are what a list of executions can be ordered by.
func ListSorts() []string {
	return []string{"cpu", "ended", "environment", "memory", "runner", "started", "status", "wall"}
}

// Causes are all of them.
func Causes() []Cause {
	return []Cause{
		CauseExited, CauseSignalled, CauseTimeout, CauseOOM, CauseOutputLimit, CauseCPULimit, CauseKilled, CauseRunnerGone, CauseStartFailed,
	}
}
