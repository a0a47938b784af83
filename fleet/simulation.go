package fleet

import (
	"time"

	"github.com/drover-project/drover"
)

// Simulation asks what a policy would have done with a workload, on virtual time.
type Simulation struct {
	Policy   *Policy
	Trace    []byte        // the workload, a line a task; empty: Workload is drawn
	Workload string        // poisson, bursty, daily, heavy or burst
	PerHour  float64       // tasks, at the busiest
	Run      time.Duration // mean run time of a task
	Length   time.Duration
	Seed     uint64
	Provider string          // loopback, docker or ec2: whose limits of calls count; default the policy's, or else ec2
	Max      int             // machines that the provider makes at most; 0 = no limit
	Room     drover.Capacity // that its machines may take together; what is 0 has no limit
	Boot     time.Duration   // of machines, typically; default what is usual with the provider
	Faults   float64         // share of boots that fail, and of calls that fail
	Compare  bool            // with Arvados', Cluster Autoscaler's and Karpenter's rules, and with a minute of idling
}

// Simulated is what came of it.
type Simulated struct {
	Rules    string // "drover", or whose were used for comparison
	Tasks    int
	Cost     float64
	WaitMean time.Duration
	Waiting  float64 // what the waiting is worth, by the policy's WaitCost
	Total    float64 // of both: what rules are judged by
	Stopped  []SimulatedStop
	Cloud    string  // what was simulated, for people
	Bound    float64 // what a clairvoyant would pay at least
	Machines int     // bought
	Peak     int     // at once
	Again    int     // bought within ten minutes after an equal one was returned
	Redone   int     // starts of work that was lost with its machine
	Hours    float64 // of machines
	WaitP50  time.Duration
	WaitP95  time.Duration
	WaitP99  time.Duration
	Until    time.Duration // virtual time at the end
	Hash     string        // of everything that was decided: equal seeds give equal hashes
	Points   []SimulatedPoint
}

// SimulatedStop is a limit that kept machines from being bought.
type SimulatedStop struct {
	What   string        // the pool's maximum of 4 machines
	Waited time.Duration // by all tasks together, while they were kept waiting by it
}

// SimulatedPoint is a moment of the simulation.
type SimulatedPoint struct {
	At       time.Duration
	Machines int
	Running  int // tasks
	Waiting  int
	PerHour  float64
}
