// Package scenario is what is done to a simulated world: texts of steps that clients, operators and bad luck take, drawn from a
// seed, read from a file or written to one, and the jobs and environments that steps ask for. What a step does is the
// simulation's; nothing is started here.
package scenario
