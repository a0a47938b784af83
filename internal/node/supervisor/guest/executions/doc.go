// Package executions runs the commands that the agent asks for in a guest. It keeps their output until every session has
// it, and for longer where that is asked for, and serves any number of sessions from the offsets that they name. It keeps their limits,
// and tells how they ended.
//
// Who may run what is decided before. A command has a goroutine for each of its two streams and one that waits for its
// end. A session has one that sends, on which Start or Attach is called, and one that feeds the program's stdin, which is that of the
// session that came last.
package executions
