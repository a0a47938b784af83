package throttle

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestABucketIsWhatASimpleOneIs compares with a bucket in exact numbers: at 1 a millisecond, all times in milliseconds.
func TestABucketIsWhatASimpleOneIs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		burst := rapid.IntRange(1, 5).Draw(t, "burst")
		l := New[string](1000, burst)
		start, now := time.Unix(1_700_000_000, 0), 0
		left, last := map[string]int{"a": burst, "b": burst}, map[string]int{}
		for range rapid.IntRange(1, 50).Draw(t, "asks") {
			now += rapid.IntRange(0, 3).Draw(t, "later")
			key := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key")
			left[key], last[key] = min(burst, left[key]+now-last[key]), now
			wait, ok := l.Admit(key, start.Add(time.Duration(now)*time.Millisecond))
			require.Equal(t, left[key] > 0, ok)
			if ok {
				left[key]--
			} else {
				require.InDelta(t, float64(time.Millisecond), float64(wait), float64(time.Microsecond))
			}
		}
	})
}

// TestWhoAsksStaysKnown: strangers without number neither fill the memory nor renew the bucket of who goes on asking.
func TestWhoAsksStaysKnown(t *testing.T) {
	t.Parallel()
	l, now := New[int](0.001, 1), time.Unix(1_700_000_000, 0)
	_, ok := l.Admit(-1, now)
	require.True(t, ok)
	for i := range 4 * MaxKeys {
		l.Admit(i, now)
		if i%1000 == 0 {
			_, ok := l.Admit(-1, now)
			require.False(t, ok)
		}
	}
	n := 0
	for i := range l.parts {
		n += len(l.parts[i].young) + len(l.parts[i].aged)
	}
	require.LessOrEqual(t, n, MaxKeys)
}

func TestManyAtOnceGetNoMoreThanTheBucket(t *testing.T) {
	t.Parallel()
	l, now := New[string](1, 100), time.Unix(1_700_000_000, 0)
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				if _, ok := l.Admit("x", now); ok {
					admitted.Add(1)
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 100, admitted.Load())
}

func BenchmarkAdmit(b *testing.B) {
	l, now := New[string](1e12, 1), time.Unix(1_700_000_000, 0)
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Microsecond)
		l.Admit("a-token's-accessor-id", now)
	}
}
