// Package parts has what pages are built of: tables, facts, links, statuses, times, sizes, and sections that are kept up to date. It asks
// nobody anything, and starts no goroutine.
package parts
