// Package check tries a provider with one real machine: it is created, listed, awaited, tagged and destroyed, and each
// step is told, for people who set a provider up.
//
// It decides nothing about pools that are in use, and touches no machine but its own. Run works in its caller's
// goroutine; one beside it watches the machine and ends with the check.
package check
