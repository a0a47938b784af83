// Package service holds the names under which others find what allocations serve: services of jobs, their registrations and the statuses
// of their checks, under Nomad's wire names. It has no I/O and starts no goroutines.
//
// What a check's keys mean is package servicecheck's, below internal.
package service
