// Package journal keeps what an execution wrote: both streams from some offset on, in the order in which their bytes came, and when
// they did (package timeline).
//
// It is a value that its owner locks, and knows neither readers nor windows: package executor says what is dropped. It starts no
// goroutines.
package journal
