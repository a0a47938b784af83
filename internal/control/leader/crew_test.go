package leader

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/drover-project/drover"
)

// However the number is changed, so many compute at once as it says, once those that are too many have ended.
func TestCrews(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(0, 4).Draw(t, "first")
		c := newCrew(size, schedulerTypes, time.Time{})
		busy, ended := 0, context.WithoutCancel(context.Background())
		ended, cancel := context.WithCancel(ended)
		cancel()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				select {
				case <-c.tokens:
					require.Less(t, busy, size)
					busy++
				default:
					require.GreaterOrEqual(t, busy, size)
					require.Error(t, c.begin(ended))
				}
			case 1:
				if busy > 0 {
					c.end()
					busy--
				}
			default:
				size = rapid.IntRange(0, 4).Draw(t, "size")
				c.set(size, schedulerTypes, time.Time{})
			}
		}
	})
}

// Who waits for an evaluation hears of a change, and a crew of nobody takes none.
func TestCrewsAreTold(t *testing.T) {
	t.Parallel()
	c := newCrew(1, schedulerTypes, time.Time{})
	types, until, stop := c.work(t.Context())
	defer stop()
	require.Equal(t, schedulerTypes, types)
	c.set(0, []string{drover.JobTypeSystem}, time.Time{})
	<-until.Done()
	types, until, stop = c.work(t.Context())
	require.Empty(t, types)
	c.set(2, []string{drover.JobTypeSystem}, time.Time{})
	<-until.Done()
	stop()
	types, _, stop = c.work(t.Context())
	defer stop()
	require.Equal(t, []string{drover.JobTypeSystem}, types)
}
