package agent

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
)

func TestReleasedRunnersStopOneByOneWhileOthersAreUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var busy atomic.Bool
		var stopped atomic.Int64
		s := newStops(clock.Wall{}, busy.Load)
		go s.run(t.Context()) // ends with the test
		add := func(n int) {
			for range n {
				s.add(func() { stopped.Add(1) })
			}
			synctest.Wait()
		}
		add(10)
		require.EqualValues(t, 10, stopped.Load(), "all at once when it is calm")
		busy.Store(true)
		add(10)
		require.EqualValues(t, 11, stopped.Load())
		time.Sleep(5 * stopPace)
		synctest.Wait()
		require.EqualValues(t, 16, stopped.Load())
		busy.Store(false)
		time.Sleep(stopPace)
		synctest.Wait()
		require.EqualValues(t, 20, stopped.Load(), "the rest at once when it is calm again")
		busy.Store(true)
		add(1)
		add(stopsMost + 1)
		time.Sleep(stopPace)
		synctest.Wait()
		require.EqualValues(t, 22+stopsMost, stopped.Load(), "too many wait for nothing")
	})
}
