// Package cli is the command line: it composes the families of commands, which are packages of their own below it, and
// turns their errors into exit codes. It uses the HTTP API as everybody does; what runs on this machine itself is given to
// it as functions (Parts). It starts no goroutine.
package cli
