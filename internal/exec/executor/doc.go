// Package executor runs commands in claimed runners and keeps what they wrote for those who read it: several readers
// at once, from any offset, and some time after the end.
//
// One goroutine an execution moves frames from the runner's session into a bounded journal (package journal); readers take them from
// there at their own pace. A reader that is behind by the whole window stops that goroutine, and by that, through the
// session's flow control, the program. While nobody is attached a detached execution's journal drops its oldest bytes;
// one that may not run detached waits for a reader, and is killed when its grace is over. Observers read along at a pace of their own:
// nobody waits for them, and nothing lives on for them. When output came is kept beside it, thinned out to a bound.
//
// What to call: RunOnce does all of one request, from the claim to the release. Start runs a command, Create tells of it those who
// attach later, Open attaches at once. CreateRequest and OpenRequest are these for a client's request, whose repetition finds the first
// one's execution. Prepare keeps a command for the one who connects with its id, who takes it by Take and starts it by Open. Attach,
// Observe, Wait, Info and Control are for an execution that is there.
//
// Who may run what where is package runner's: a claimed runner is given. The Executor owns the executions' goroutines;
// each ends with its execution.
package executor
