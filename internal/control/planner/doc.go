// Package planner makes plans true. The scheduler proposes on a snapshot; Check, a pure function, re-checks a plan
// against the newest state, and Planner commits what was accepted: many plans share one raft entry. While an entry is
// on its way, the next one is gathered, and checked against the state plus what is on its way. So a lone plan waits
// for nothing, and under load the entries grow by themselves.
//
// It places nothing by itself. Run owns the pipeline: one goroutine gathers and checks, and one for each entry under
// way ends when the log has answered.
package planner
