package wake_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/wake"
)

func ready(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestSignalsThatNobodyReceivedAreOne(t *testing.T) {
	t.Parallel()
	s := wake.NewSignal()
	require.False(t, ready(s.C()), "nobody sent")
	for range 3 {
		s.Send()
	}
	require.True(t, ready(s.C()))
	require.False(t, ready(s.C()), "three sends are one signal")
	s.Send()
	require.True(t, ready(s.C()), "it can be sent again")
}

func TestCopiesAreTheSameSignal(t *testing.T) {
	t.Parallel()
	a := wake.NewSignal()
	b := a
	b.Send()
	require.True(t, ready(a.C()))
	require.False(t, ready(b.C()))
}

// TestNoChangeIsLost has many writers and one loop that reads the state only when it is woken up. The bubble fails with a
// deadlock if the last change wakes nobody.
func TestNoChangeIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const writers, changes = 8, 100
		s := wake.NewSignal()
		var mu sync.Mutex
		state := 0
		for range writers {
			go func() {
				for range changes {
					mu.Lock()
					state++
					mu.Unlock()
					s.Send()
				}
			}()
		}
		for seen := 0; seen < writers*changes; {
			<-s.C()
			mu.Lock()
			seen = state
			mu.Unlock()
		}
	})
}

func TestABroadcastWakesAllWhoWait(t *testing.T) {
	t.Parallel()
	var b wake.Broadcast
	b.Send() // nobody waits: it is forgotten
	one, two := b.C(), b.C()
	require.False(t, ready(one))
	b.Send()
	require.True(t, ready(one))
	require.True(t, ready(two))
	require.True(t, ready(one), "it stays closed")
	require.False(t, ready(b.C()), "who waits from now on waits for the next")
}

// TestNoBroadcastIsLost has many waiters that ask for the channel before they look at the state.
func TestNoBroadcastIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const waiters, changes = 8, 100
		var b wake.Broadcast
		var mu sync.Mutex
		state := 0
		var woken sync.WaitGroup
		for range waiters {
			woken.Go(func() {
				for {
					changed := b.C()
					mu.Lock()
					last := state == changes
					mu.Unlock()
					if last {
						return
					}
					<-changed
				}
			})
		}
		for range changes {
			mu.Lock()
			state++
			mu.Unlock()
			b.Send()
		}
		woken.Wait()
	})
}

func TestSignalsAllocateNothing(t *testing.T) {
	s, b := wake.NewSignal(), &wake.Broadcast{}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		s.Send()
		<-s.C()
		b.Send()
	}))
}
