package raftlog

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhoSeesAnEntryFindsItsAnswer: the state has the entry a moment before its answer is kept. Who asked in that moment was told
// that the answer is not known any more.
func TestWhoSeesAnEntryFindsItsAnswer(t *testing.T) {
	t.Parallel()
	r := &recent{}
	var wait sync.WaitGroup
	for index := range uint64(100) {
		applied := make(chan struct{})
		wait.Go(func() { // ends with its answer
			<-applied
			a, ok := r.get(index)
			if !ok || a.value != index {
				t.Errorf("entry %d: %v %v", index, a, ok)
			}
		})
		r.keep(func() answer {
			close(applied) // the state has it, and wakes who waits
			return answer{index: index, value: index}
		})
	}
	wait.Wait()
	r.keep(func() answer { return answer{index: 7, lost: true} })
	a, ok := r.get(7)
	require.True(t, ok && a.value == uint64(7), "what is lost is no answer")
	require.True(t, (*recent)(nil).keep(func() answer { return answer{lost: true} }).lost)
}
