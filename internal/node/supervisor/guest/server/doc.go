// Package server is the server inside of drover-init: it owns a task's main process, its logs and exit, all executions
// and the work on the guest's files, and serves them to the agent over an inherited listener. It is linked into a
// program of which there is one a task, so it imports little and keeps little.
//
// What should run is the agent's word. The Server owns all goroutines: each ends with its connection, its execution or
// its task, which the line that starts it says.
package server
