// Package sampler has nodes say what allocations use now, on whatever nodes they run.
//
// Whoever looks at a page asks every few seconds. However many they are, an allocation is sampled once in two seconds, and who asks while
// its node is asked waits for the same answer. What was sampled is kept for half an hour, of what was looked at last.
//
// Goroutines are those of questions that are under way; they end within three seconds.
package sampler
