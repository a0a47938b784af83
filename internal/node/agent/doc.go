// Package agent makes a machine a node: it registers with control, keeps what control assigned running, reports what
// it observes, and answers what is asked about running things (exchange.Workloads).
//
// The exchange is level-triggered. Four loops share one table of allocation runners: heartbeat, pull (what control
// wants), push (what the node observes), and collect (folders of ended allocations).
//
// What runs in an allocation is packages allocrunner's and taskrunner's. Run owns the goroutines of the loops and of all
// allocation runners, and returns when they have ended; what they run goes on.
package agent
