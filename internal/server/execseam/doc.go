// Package execseam is the seam between the execution service and the control plane. Each type turns what one side has into what
// the other side declares. Runners are claimed and released through the intake, events of executions go into the log,
// environments are found among jobs and shown as jobs. It translates only, and starts no goroutine.
package execseam
