// Package manual writes man pages of all commands, from what their help is made of. It starts no goroutine.
package manual
