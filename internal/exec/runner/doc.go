// Package runner keeps the warm runners of all environments in memory and hands them out.
//
// A runner is an allocation of an environment's job. The engine keeps enough of them warm. This package follows the event
// stream to know them, takes one for a claim, writes one line to a local journal, and answers. The claim is recorded through
// control right after, many at once. Whatever was handed out and not yet recorded is known from the journal after a restart, so
// that no runner is ever handed out twice.
//
//	(allocation running, unclaimed) → warm → claimed ⇄ busy → gone⟂
//
// Core decides and knows no I/O (the files core*.go); Service is the shell around it: it owns the lock, the journal,
// the timers and three goroutines, which live as long as Run. What runs in a runner is the business of the package
// that executes, and how many runners there are is control's.
package runner
