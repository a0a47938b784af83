// Package taskrunner performs what node/taskmachine decides for one task: it runs hooks, asks the driver, waits, stops. The
// events that result go back through Config.Post to the allocation's loop, which calls Apply. So all tasks of an allocation are
// decided in one goroutine. A running task costs one more, the one that waits for its end.
//
// What follows from an event is package taskmachine's; when tasks start is package allocrunner's.
package taskrunner
