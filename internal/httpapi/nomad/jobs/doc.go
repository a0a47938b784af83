// Package jobs is the group of the Nomad face that reads, registers and changes jobs: all below /v1/jobs, /v1/job and
// /v1/scaling, with validation and parsing of job files.
//
// It holds no rules about jobs: control/intake does, behind Intake and Versions. It owns no goroutines.
package jobs
