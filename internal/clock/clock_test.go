package clock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAwaitEndsWithWhatComesFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		start, signal := time.Now(), make(chan struct{}, 1)
		require.True(t, Await(ctx, Wall{}, time.Minute, signal, nil))
		require.Equal(t, time.Minute, time.Since(start))

		signal <- struct{}{}
		require.True(t, Await(ctx, Wall{}, Forever, nil, signal))
		require.Empty(t, signal, "the signal was received")

		Go(Wall{}, func() { // ends with the sleep
			Sleep(t.Context(), Wall{}, time.Hour)
			cancel()
		})
		require.False(t, Await(ctx, Wall{}, Forever, signal))
		require.Equal(t, time.Minute+time.Hour, time.Since(start))
	})
}

// own is a clock that does what its loops ask for by itself.
type own struct {
	Wall
	asked []time.Duration
}

func (o *own) Await(_ context.Context, d time.Duration, _ ...<-chan struct{}) bool {
	o.asked = append(o.asked, d)
	return false
}

func (o *own) Go(f func()) { f() }

func TestACooperativeClockIsAsked(t *testing.T) {
	t.Parallel()
	o := &own{}
	Go(o, func() { require.False(t, Sleep(t.Context(), o, time.Second)) })
	require.False(t, Await(t.Context(), o, Forever))
	require.Equal(t, []time.Duration{time.Second, Forever}, o.asked)
}
