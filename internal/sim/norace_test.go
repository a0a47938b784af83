//go:build !race

package sim

const defaultSeeds = 300

// Of several servers a seed takes four times as long as of one.
const defaultSeveral = 150
