// Package size reads sizes in bytes, as configurations write them. It has no state.
package size
