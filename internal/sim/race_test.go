//go:build race

package sim

// Under the race detector a seed takes eight times as long.
const defaultSeeds = 300
