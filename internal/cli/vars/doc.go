// Package vars has the commands about variables: put, get, list, purge and lock.
//
// While "var lock" runs a command, a goroutine renews the lock; it ends with the command.
package vars
