package leader

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
)

func TestALateWatcherForgives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHeartbeats(Config{}.withDefaults(), clock.Wall{})
		h.beat("a")
		time.Sleep(5 * time.Second)
		h.beat("b")
		time.Sleep(20 * time.Second)
		h.forgive(time.Second)
		h.forgive(5 * time.Second)
		ids, wait := h.overdue()
		require.Empty(t, ids, "we slept ourselves")
		require.Equal(t, 10*time.Second, wait)
		h.beat("b")
		time.Sleep(10 * time.Second)
		h.forgive(time.Second)
		ids, _ = h.overdue()
		require.Equal(t, []string{"a"}, ids, "being a little late forgives nothing")
	})
}
