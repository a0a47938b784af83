// Package cookies is what browsers keep for the page: the session, what is told once, a login that is under way, and the theme. No script
// can read any of it, and only the page does: the API reads no cookies.
//
// It starts no goroutines.
package cookies
