package nodes

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
)

// A node that was given up comes back, which is an entry of the log, and the log takes its time. What the others said waited behind
// it, so that they were given up as well.
func TestOneItemHoldsNobodyElseUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		written := make(chan struct{})
		messages := 0
		g := &gather[string, int]{clock: clock.Wall{}, most: 1, slow: time.Second}
		g.send = func(_ context.Context, list []string) ([]result[int], error) {
			messages++ // before anything else is sent
			for _, item := range list {
				if item == "given up" {
					<-written
				}
			}
			return make([]result[int], len(list)), nil
		}
		ask := func(item string) <-chan error {
			done := make(chan error, 1)
			go func() { _, err := g.ask(t.Context(), item); done <- err }() // ends with the answer
			synctest.Wait()
			return done
		}
		began := time.Now()
		back := []<-chan error{ask("given up")}
		for range 10 {
			alive, other := ask("alive"), ask("alive")
			require.NoError(t, <-alive)
			require.NoError(t, <-other)
			back = append(back, ask("given up"))
		}
		require.Equal(t, 10*time.Second, time.Since(began), "each waited until the one before it was slow")
		require.Equal(t, 1+10+10, messages, "what waits goes together")
		close(written)
		for _, done := range back {
			require.NoError(t, <-done)
		}
		synctest.Wait()
		require.Zero(t, g.flying)
		require.NoError(t, <-ask("alive"))
		require.Zero(t, g.flying)
	})
}
