package execution

import "time"

// History is how pools stood, and how long claims, starts and first outputs took, step by step. It is kept in memory by each server for
// itself, for six hours at most; a server that was started anew begins again.
type History struct {
	From        time.Time     `json:"from"`        // where the first step begins
	Step        time.Duration `json:"step"`        // of how pools stood
	LatencyStep time.Duration `json:"latencyStep"` // of latencies; a minute or more
	Pools       []PoolHistory `json:"pools"`       // by environment
	// Missing are, of those asked for, environments of which nothing is kept: a server keeps 64, of each namespace as many as of any other,
	// and of them those that were used last.
	Missing int `json:"missing,omitempty"`
}

// PoolHistory is that of one environment. A number for each step; -1: it is not known.
type PoolHistory struct {
	Environment string         `json:"environment"`
	Namespace   string         `json:"namespace,omitempty"` // "" = default
	Size        []int          `json:"size"`                // the most in the step
	Warm        []int          `json:"warm"`                // the least
	Claimed     []int          `json:"claimed"`             // the most
	Waiting     []int          `json:"waiting"`             // the most
	Claims      LatencyHistory `json:"claims"`              // from asking for a runner until it was handed out
	Starts      LatencyHistory `json:"starts"`              // from asking for a command until its node had started it
	FirstBytes  LatencyHistory `json:"firstBytes"`          // from asking for a command until its first output came, if one did
}

// LatencyHistory is how long something took in each step, and in all of them.
type LatencyHistory struct {
	All   Latency   `json:"all"`
	Steps []Latency `json:"steps"`
}

// Latency says how often something was done, and how long it took at most in half of the cases, in 95 and in 99 of 100. Times are exact
// to about a fifth; 0: there was none.
type Latency struct {
	Count int64         `json:"count"`
	P50   time.Duration `json:"p50"`
	P95   time.Duration `json:"p95"`
	P99   time.Duration `json:"p99"`
}
