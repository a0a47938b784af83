package stack

// Grow8K makes the calling goroutine's stack 8 KiB at least. It is for a goroutine's beginning, when there is nothing to copy.
func Grow8K()

// Grow16K is Grow8K for goroutines that call deep.
func Grow16K()
