package keeper

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/fleet"
)

func (w *world) ApplyPools(ctx context.Context, list []*fleet.Pool, _ uint64) error {
	return w.PutPools(ctx, list)
}

// TestOnlyTheFirstLeadersConfigurationCounts: later ones of several change nothing, and are named once; a server that is alone
// stores its own at each start.
func TestOnlyTheFirstLeadersConfigurationCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		k, _ := newKeeper(t, w, Config{Several: true, Pools: []*fleet.Policy{policy("p")}})
		run(t, k)()
		require.NotNil(t, w.FleetIdentity())
		require.NotNil(t, w.FleetPool("p"))

		other := policy("p")
		other.Max = 5
		k, _ = newKeeper(t, w, Config{Several: true, Pools: []*fleet.Policy{other, policy("q")}})
		var said bytes.Buffer
		k.deps.Logger = slog.New(slog.NewTextHandler(&said, nil))
		stop := run(t, k)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Zero(t, w.FleetPool("p").Policy.Max)
		require.Nil(t, w.FleetPool("q"))
		require.Equal(t, 1, bytes.Count(said.Bytes(), []byte("pool p differs in Max; pool q is new")), said.String())
		require.NoError(t, w.PutPools(t.Context(), []*fleet.Pool{
			{Name: "p", Policy: other, Source: fleet.SourceConfig}, {Name: "q", Policy: policy("q"), Source: fleet.SourceConfig},
		}))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, 1, bytes.Count(said.Bytes(), []byte("differs=")), "nothing differs any more")
		stop()

		k, _ = newKeeper(t, w, Config{Pools: []*fleet.Policy{policy("p")}})
		run(t, k)()
		require.Zero(t, w.FleetPool("p").Policy.Max)
		require.Nil(t, w.FleetPool("q"), "it ended, as it had no machine")
	})
}
