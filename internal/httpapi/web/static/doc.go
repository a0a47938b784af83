// Package static has the page's style sheets, scripts and pictures, and sends them. What others wrote lies in vendor, compressed.
//
// It starts no goroutines.
package static
