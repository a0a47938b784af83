// Package runes cuts byte streams into pieces of text without cutting characters.
//
// It knows no dialect. It starts no goroutines.
package runes
