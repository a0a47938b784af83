package drover

import "time"

// FleetSimulation asks what a policy would have done with a workload, on virtual time.
type FleetSimulation struct {
	Policy   *FleetPolicy
	Trace    []byte        // the workload, a line a task; empty: Workload is drawn
	Workload string        // poisson, bursty, daily, heavy or burst
	PerHour  float64       // tasks, at the busiest
	Run      time.Duration // mean run time of a task
	Length   time.Duration
	Seed     uint64
	Boot     time.Duration // of machines, typically; default 45 s
	Faults   float64       // share of boots that fail, and of calls that fail
	Compare  bool          // with Arvados' rules and with Cluster Autoscaler's
}

// FleetSimulated is what came of it.
type FleetSimulated struct {
	Rules    string // "drover", or whose were used for comparison
	Tasks    int
	Cost     float64
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
	Points   []FleetSimulatedPoint
}

// FleetSimulatedPoint is a moment of the simulation.
type FleetSimulatedPoint struct {
	At       time.Duration
	Machines int
	Running  int // tasks
	Waiting  int
	PerHour  float64
}
