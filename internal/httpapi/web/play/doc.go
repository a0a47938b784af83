// Package play is the playground: a program, its input and its files run in a warm runner, with a script live, without one in one request.
// The page of which it is part asks the API, with the viewer's token.
//
// It starts no goroutines.
package play
