// Package clitest runs commands, in this process, against a fake API: Run runs scripts, each of which brings the answers
// along as files, and Serve is for tables of commands in Go. It is for tests. The goroutines of a server end with its test.
package clitest
