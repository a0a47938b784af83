package fleet

import (
	"time"

	"github.com/drover-project/drover"
)

// PoolStatus is a pool with how it stands.
type PoolStatus struct {
	Pool
	Problem   string         // why its provider can't be used; "" if it can
	Alert     string         // that it costs more than its budget; "" if it does not
	Lacks     string         // why it has fewer machines than Least; "" if it has them, or they come
	Failed    string         // how its last create failed, while work waits or machines lack; "" if none did in ten minutes
	Machines  map[string]int // by state
	PerHour   float64        // what its machines cost an hour
	Today     float64        // what was charged for the pool's machines since midnight UTC
	Least     int            // machines that are kept now: Min, or what a schedule says
	Waiting   []Waiting
	NextCheck time.Time // when the fleet looks again if nothing happens; zero = no need
}

// Waiting is a kind of work that waits for machines, and what happens about it.
type Waiting struct {
	Pool     string
	Class    string // job/group, with the namespace before it unless it is the default
	Each     drover.Capacity
	Count    int
	Placed   int // has room on machines that are there or starting, or gets it before a new one could come
	Bought   int // for which machines are bought now
	Position int // in line: 1 is served first
	Of       int
	Priority int
	Since    time.Time
	Reason   string
	ReadyAt  time.Time // when the first machine for it is expected; zero = not known
}

// ActionKind says what is to be done.
type ActionKind string

// The kinds of actions.
const (
	ActionCreate  ActionKind = "create"
	ActionDrain   ActionKind = "drain"   // no new work; the machine is destroyed once it is idle
	ActionUndrain ActionKind = "undrain" // take work again
	ActionDestroy ActionKind = "destroy"
)

// Action is one thing that the fleet does, or would do now, and why.
type Action struct {
	Kind     ActionKind
	Offering string // of a create
	Count    int    // of a create
	PerHour  float64
	Instance string // of the others
	Hedge    bool   // of a create: beside a machine that is slow to start
	Why      string // a code
	Reason   string // for people
}

// Plan is a dry run of a pool: what the fleet would do now, and why.
type Plan struct {
	Pool     string
	At       time.Time
	Actions  []Action
	Waiting  []Waiting
	Deferred int // creates that are wanted, but wait for their turn
	Settled  bool
	Note     string
}

// Audit is a line of the audit log.
type Audit struct {
	At       time.Time
	Pool     string
	Instance string
	Several  []string `json:",omitempty"` // the instances of a line that is about more than one
	What     string   // create, drain, destroy, a state, or an operator's word
	Why      string   // a code
	Reason   string   // for people
	Count    int
	Offering string
	Provider string // of what is about none of its pools
}

// Explanation says why a machine is there, and what becomes of it.
type Explanation struct {
	Instance Instance
	Text     []string // sentences for people
	Next     []Action
	Jobs     []drover.NamespacedID
	History  []Audit
}

// CostReport is the ledger, summed up.
type CostReport struct {
	From  string
	By    string // day, pool, job, namespace or machine; two of the first four, as "day,job"
	Total float64
	Lines []CostLine
}

// CostLine is a line of a report. Key is what it is about: a day, a pool, a namespace, namespace/job ("idle" for what nothing
// used), or a machine. Of is the same by the second of two keys.
type CostLine struct {
	Key   string
	Of    string `json:",omitempty"`
	Pool  string
	Cost  float64
	Hours float64 // of machines
	Gone  bool    // the machine is
}

// Pause switches decisions off.
type Pause struct {
	Creates  bool
	Destroys bool
	Reason   string
}
