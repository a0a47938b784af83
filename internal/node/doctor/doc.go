// Package doctor runs the hostile programs of package trial against this machine, for the command `drover doctor`: in real
// sandboxes, and in containers of the daemon that the machine has.
//
// It joins the parts of a node for that, and owns all that it makes: a folder, control groups, a bridge. What the programs
// are, and what counts as an escape, is package trial's. It starts no goroutine of its own.
package doctor
