// Package docker runs tasks as containers of a docker daemon, with drover-init as their first process.
//
// The image is left as it is: drover-init is mounted into the container, also where there is no shell. It gets its socket
// from package supervisor/handover, so that nothing by which the agent commands it can be seen from inside. It starts the
// task's command with the user, environment and folder that docker would have used. It also runs executions, and writes
// the logs itself (docker's log driver is none). The daemon is needed to start and to remove a container, and for nothing
// between. So a restart of a daemon with live-restore is not even noticed; one without it kills the containers, which is
// an exit with an error.
//
// Runtimes with a kernel of their own (runsc) take no socket from the machine. There drover-init is reached by the
// container's stdin and stdout, through the daemon; see package supervisor/pipelink. What runs there survives a daemon
// with live-restore as well, and can be reached again when it is back.
//
// Containers carry the agent's label. Those which no task of the agent knows, after a grace, are removed.
//
// Where images come from and who may have what of the machine is said by the node's configuration. The driver's
// only goroutines watch containers that start, each for as long as its start waits for drover-init.
package docker
