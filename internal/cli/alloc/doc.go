// Package alloc is "drover alloc": allocations are listed and shown, their logs and files read, commands run in their
// tasks, and they are stopped, restarted and signalled.
//
// Its goroutines: those that print logs end with them; those of an exec session (heartbeat, terminal size) end with its
// context, and the one that reads stdin with stdin, or the process.
package alloc
