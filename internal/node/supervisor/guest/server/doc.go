// Package server is drover-init: it accepts the agent's connections, and hands each request to the package that does it:
// task, executions or files. It decides when drover-init ends, and when it may serve another task. It is linked into a
// program of which there is one for each task, so it imports little and keeps little.
//
// What should run is the agent's word. The Server owns all goroutines: each ends with its connection, its execution or
// its task, which the line that starts it says.
package server
