// Package allocrunner runs one allocation: its tasks in lifecycle order, their reactions to each other, its end, and
// the client status that follows from all that.
//
// One goroutine, Run, owns everything. After each message it settles: it looks at where all tasks stand and does what
// is due. So no order of events can be missed.
//
//	prestart → main → poststart      (sidecars of prestart and poststart run beside)
//	              ╲ all but poststop dead → poststop → ended
//	kill: group shutdown_delay → leader → main tasks → sidecars → poststop
//
// What a task's event leads to is package taskmachine's. A Runner owns one loop, and the goroutines that wait for hooks
// and tasks, and ends when they have.
package allocrunner
