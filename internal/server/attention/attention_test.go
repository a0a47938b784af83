package attention

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/insight"
	"github.com/drover-project/drover/internal/control/store"
)

// TestManyWhoAskCostOneJudgement: on a cluster that takes a tenth of a second to judge, a judgement serves all for two seconds, and who
// leaves while they wait spoils it for nobody.
func TestManyWhoAskCostOneJudgement(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		made := 0
		a := New(func(ctx context.Context) insight.Facts {
			made++
			clock.Sleep(ctx, clock.Wall{}, 100*time.Millisecond)
			return insight.Facts{State: store.New().Snapshot()}
		}, clock.Wall{})
		seen := func(string) bool { return false }
		ask := func(ctx context.Context) error {
			_, err := a.For(ctx, cluster.Viewer{Jobs: seen, Runners: seen, Volumes: seen})
			return err
		}
		gone, leave := context.WithCancel(t.Context())
		errs := make(chan error, 11)
		go func() { errs <- ask(gone) }() // ends with gone
		synctest.Wait()
		for range 10 {
			go func() { errs <- ask(t.Context()) }() // ends with the judgement
		}
		synctest.Wait()
		leave()
		require.Equal(t, drover.Canceled, drover.CodeOf(<-errs))
		for range 10 {
			require.NoError(t, <-errs)
		}
		require.Equal(t, 2, made, "that of who left was not kept")
		require.NoError(t, ask(t.Context()))
		require.Equal(t, 2, made)
		clock.Sleep(t.Context(), clock.Wall{}, 2*time.Second)
		require.NoError(t, ask(t.Context()))
		require.Equal(t, 3, made)
	})
}
