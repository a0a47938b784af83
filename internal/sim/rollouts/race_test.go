//go:build race

package rollouts

// Under the race detector a seed takes eight times as long, and there is one goroutine. CI plays the 300 without it (make seeds).
const defaultSeeds = 20
