// Package diskuse measures what a folder takes of its file system. A guest may own the folder and change it meanwhile:
// no link is followed, other file systems are not entered, and the work is bounded.
//
// A Meter measures when it is asked, and not too often.
//
// What happens to a task that wrote too much is its driver's. One goroutine measures while there are tasks to watch,
// and ends with the last.
package diskuse
