// Package cron reads cron lines, of periodic jobs and of the fleet's schedules: hashicorp/cronexpr behind a guard.
//
// It has no I/O and starts no goroutines. What a line is for is with its users.
package cron
