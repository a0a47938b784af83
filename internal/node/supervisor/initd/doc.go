// Package initd is the server inside of drover-init: it owns a task's main process, its logs and exit, all executions
// and the work on the guest's files, and serves them to the agent over an inherited listener. It is linked into a
// program of which there is one a task, so it imports little and keeps little.
package initd
