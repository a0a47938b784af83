// Package agent makes a machine a node: it registers with control, keeps what control assigned running, reports what
// it observes, and answers what is asked about running things (exchange.Workloads).
//
// The exchange is level-triggered. Four loops share one table of allocation runners: heartbeat, pull (what control
// wants), push (what the node observes), and collect (folders of ended allocations).
package agent
