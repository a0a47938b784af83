// Package servicecheck reads the checks of services: what a job says of them, in either of its forms, with defaults and
// faults. Package node/checks carries them out. It is pure and starts no goroutines.
package servicecheck
