// Package guesttest lets tests of drover-init's parts run programs as it does, and plays the agent for them.
//
// It has all children of the test's process: its tests do not start programs by os/exec. One goroutine reaps until the
// process ends.
package guesttest
