// Package evaluator has texts that users wrote (templates of tasks, job files) evaluated in child processes. They are programs
// in small languages, and no list of bounds keeps them from using up memory or time in some way that nobody thought of.
//
// The child is this program itself, executed again: Child, called first thing in main, serves there and does not return. It
// inherits no environment and no file. Before it reads its first request it bounds its memory, its processor time and its rank
// among what the kernel ends when memory is short. It gives up all system calls but those that Go's runtime needs to compute:
// no file, no socket, no other process. It ends when its standard input does, so none outlives its parent. Children keeps some
// children at hand, since starting one takes about 10 ms and asking one a fraction of one. What takes too long, or is not
// wanted any more, is killed with its child.
//
// There is no way around: where no child can be started, evaluating fails and says why.
//
// What is evaluated is the caller's function. Children owns its processes and ends them in Close; a request's goroutine
// ends when the child has read it or is gone.
package evaluator
