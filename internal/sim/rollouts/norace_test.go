//go:build !race

package rollouts

const defaultSeeds = 300
