// Package task runs the main process of a task: its start, its two log files, its signals and stop, its end, and notices
// of what goes wrong meanwhile.
//
// Whether there may be one, and one only, is decided by package server. A Task has a goroutine for each log file and one
// that follows it; all end with its process.
package task
