// Package process keeps what drover-init started and everything that descends from it. It starts children, reaps them and
// the orphans that the kernel hands over, and lists and kills the whole tree of a program.
//
// What a program is, and why it is killed, is decided by packages task and executions. It starts no goroutines; Run is
// called in one by the server.
package process
