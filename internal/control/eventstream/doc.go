// Package eventstream keeps the latest events in memory, bounded in bytes, for any number of subscribers. A
// subscriber that resumes after index N sees every event after N, or is told that it cannot.
//
// Events are made by package fsm; this package changes none. It starts no goroutines: a subscriber waits in its own.
package eventstream
