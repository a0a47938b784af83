// Package invariant checks what must never be false. Tests and simulations panic on a breach; production counts and
// logs it.
//
// It mends nothing: who finds a breach goes on, or refuses. It starts no goroutines.
package invariant
