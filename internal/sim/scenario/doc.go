// Package scenario is what is done to a simulated world. Texts of steps that clients, operators and bad luck take are drawn
// from a seed, read from a file or written to one, with the jobs and environments that steps ask for. What a step does is the
// simulation's; no goroutine is started here.
package scenario
