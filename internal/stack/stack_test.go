package stack

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// deep needs more than the 2 KiB that a goroutine begins with.
//
//go:noinline
func deep(n int) int {
	var b [512]byte
	if b[n%512] = byte(n); n == 0 {
		return 0
	}
	return deep(n-1) + int(b[n%512])
}

func TestGrow(t *testing.T) {
	t.Parallel()
	done := make(chan int)
	for range 100 {
		go func() {
			Grow8K()
			done <- deep(20)
		}()
	}
	for range 100 {
		require.Equal(t, 210, <-done)
	}
}

func BenchmarkDeep(b *testing.B) {
	for name, grow := range map[string]func(){"grown": Grow8K, "copied": func() {}} {
		b.Run(name, func(b *testing.B) {
			done := make(chan int)
			for b.Loop() {
				go func() {
					grow()
					done <- deep(8)
				}()
				<-done
			}
		})
	}
}
