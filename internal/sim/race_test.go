//go:build race

package sim

// Under the race detector a seed takes eight times as long, and of several servers four times that: make seeds runs the others.
const defaultSeeds = 20

const defaultSeveral = 2
