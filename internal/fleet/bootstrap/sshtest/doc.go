// Package sshtest is an ssh server in the test's process that really runs what it is told to.
//
// It is for tests only. Its goroutines end with the server, which ends with the test.
package sshtest
