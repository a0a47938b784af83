// Package logs writes one stream of the main task into numbered files, which it rotates at the ends of lines and of which
// it keeps the newest.
//
// Who reads them is the agent. A File is used by one goroutine, its stream's; it starts none.
package logs
