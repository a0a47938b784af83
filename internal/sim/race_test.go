//go:build race

package sim

// Under the race detector a seed takes eight times as long, and of several servers four times that.
const defaultSeeds = 300

const defaultSeveral = 4
