// Package turns lets webhooks be told in turn: so many at once, fewer of one environment, and fewer still of one host of it.
//
// What is told, and how often again, is package executor's; how it is posted is package webhook's. It starts no goroutines: who waits for
// a turn does so in its own.
package turns
