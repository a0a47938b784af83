// Package grouped is what drivers with control groups share: the groups of executions below a task's, and a task's
// usage in Nomad's shape.
//
// Limits and kills of groups are package cgroup's. One goroutine a launch ends with the launch.
package grouped
