// Package archtest holds the house's rules as tests: who may import whom, where libraries live, how large things are, and that every
// package says what it is and who owns its goroutines. A failure prints the reason. It has tests only.
//
// What is about lines of code alone is the linter's (.golangci.yml). It starts no goroutines.
package archtest
