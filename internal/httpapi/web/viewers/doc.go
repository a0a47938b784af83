// Package viewers bounds how many pages are kept up to date at a time, and how many of them one token or address has, and answers them as
// news comes. It starts no goroutines.
package viewers
