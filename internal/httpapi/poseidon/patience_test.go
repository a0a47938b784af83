package poseidon

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
)

// steppedClock is a clock whose wall was set, as NTP does; what passes goes on as before.
type steppedClock struct {
	clock.Wall
	read, began time.Time // at the same moment: with a monotonic reading, and in synctest's time, which has none
	step        time.Duration
}

func (c *steppedClock) Now() time.Time {
	now := c.read.Add(time.Since(c.began))
	// The wall's seconds stand above 30 bits of nanoseconds, while there is a monotonic reading too.
	(*struct{ wall uint64 })(unsafe.Pointer(&now)).wall += uint64(c.step/time.Second) << 30
	return now
}

func TestPatienceHeedsNoStepOfTheWallClock(t *testing.T) {
	t.Parallel()
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		c := &steppedClock{read: time.Now()}
		synctest.Test(t, func(t *testing.T) {
			c.began = time.Now()
			before := c.Now()
			p := &peer{clock: c, began: c.Now(), patience: time.Minute}
			p.note()
			time.Sleep(30 * time.Second)
			p.note()
			c.step = step
			require.Equal(t, step+30*time.Second, c.Now().Round(0).Sub(before.Round(0)), "the wall clock was set")
			require.Equal(t, 30*time.Second, c.Now().Sub(before))
			begin := time.Now()
			require.ErrorIs(t, p.watch(context.Background()), errInactive)
			require.Equal(t, time.Minute, time.Since(begin))
		})
	}
}
