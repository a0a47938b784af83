// Package size reads sizes in bytes, as configurations write them. It has no state and starts no goroutines.
package size
