// Package allocrunnertest has a driver whose tasks a test starts, ends and loses by hand. It outlives agents, as real
// tasks do.
//
// It is for tests only, and starts no goroutines.
package allocrunnertest
