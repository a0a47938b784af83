// Package agent is "drover agent". It puts the configuration of an agent together from files, environment and flags, runs it by
// a function that is given to it, and shows it off with -demo. The demonstration's goroutine ends by itself.
package agent
