// Package providertest is the suite that every provider has to pass.
//
// It is for tests only. Goroutines that call a provider at once end with their case.
package providertest
