// Package fleet measures the fleet on simulated clouds, for "drover bench": what decisions, adoption and whole days take
// and cost. The loop of the latency figure, its one goroutine, ends with the figure.
package fleet
