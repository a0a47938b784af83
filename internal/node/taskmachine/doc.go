// Package taskmachine is the life of a task as a pure function. Step takes what is known of the task and one event, and returns
// what is known now and what has to be done. It reads no clock and no chance, and starts nothing.
//
//	           ┌──────────── restart policy ────────────┐
//	           ▼                                        │
//	pending → preparing → starting → running ──exit──→ backoff
//	   │          │           │         │ kill          │
//	   │ kill     └───────────┴────→ stopping           │ kill
//	   └──────────────────────────────→ dead ⟂ ←────────┘
//
// A dead task lives again only when its whole allocation is restarted (Revive).
//
// Effects are performed by package taskrunner. It starts no goroutines.
package taskmachine
