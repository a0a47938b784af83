// Command docgen writes the reference pages of docs/reference from the code that they describe: the agent's
// configuration, the command line, the native HTTP API, the error codes, and what of Nomad works. `make docs` runs it,
// and its test fails when a page in the tree is not what it would write.
//
// It reads types by reflection and comments from the source, so it runs in a checkout only. It holds no sentence about a
// single key, command or route: those are written where the thing is declared. It starts no goroutines.
package main
