// Package optional holds the small helpers for values that may be missing: pointers that may be nil, and fields whose
// zero value stands for a default. It decides nothing itself: which default applies is the caller's knowledge.
// It starts no goroutines.
package optional
