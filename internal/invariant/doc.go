// Package invariant reports that something happened which must never happen: one of the ten invariants of ARCHITECTURE.md
// does not hold. A test that runs into it panics; the product counts it (drover.invariant.breaches) and logs it with its
// subject.
//
// It mends nothing: who finds a breach goes on, or refuses. It starts no goroutines. Where the ten are checked, and what of
// them is not and why, stands at the constants.
package invariant
