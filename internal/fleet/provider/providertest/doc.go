// Package providertest is the suite that every provider has to pass.
//
// It is for tests only.
package providertest
