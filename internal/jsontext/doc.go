// Package jsontext writes JSON without reflection, for the few values that are written so often that encoding/json is felt: the output of
// executions, and the claim of a runner. What it writes encoding/json reads as the same value.
// It appends to what the caller brings, and starts no goroutines.
package jsontext
