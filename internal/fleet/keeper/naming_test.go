package keeper

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
)

func (w *world) NameFleet(_ context.Context, tag string) error {
	if w.older {
		return drover.Errorf(drover.NotImplemented, "a server has an older program")
	}
	return w.write(func() {
		next := w.identity.Called(tag)
		if next.Owner == "" {
			next = fleet.Identity{Owner: tag, Key: w.identity.Key}
		}
		w.identity = &next
	})
}

func TestTheFleetIsNamedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.refuses = 3
		k, _ := newKeeper(t, w, Config{})
		stop := run(t, k)
		require.Nil(t, w.FleetIdentity(), "the log refuses")
		time.Sleep(time.Minute)
		first := w.FleetIdentity()
		require.Len(t, first.Key, 32)
		require.True(t, strings.HasPrefix(first.Owner, "drover-"))
		stop()
		for _, older := range []bool{true, false} {
			w.older = older
			k, _ = newKeeper(t, w, Config{Owner: "configured"})
			stop = run(t, k)
			require.Equal(t, older, w.FleetIdentity() == first, "the state knows every name that machines were bought under")
			who, err := k.identify(t.Context())
			require.NoError(t, err)
			require.Equal(t, fleet.Identity{Owner: "configured", Key: first.Key, Seed: first.Seed, Also: []string{first.Owner}}, who)
			stop()
		}
		k, _ = newKeeper(t, w, Config{})
		stop = run(t, k)
		who, err := k.identify(t.Context())
		require.NoError(t, err)
		require.Equal(t, first.Owner, who.Owner)
		require.Equal(t, []string{"configured"}, who.Also, "machines of that name stay ours")
		stop()

		w.identity = &fleet.Identity{Key: first.Key, Former: []string{"another"}} // restored before the fleet had a name
		k, _ = newKeeper(t, w, Config{})
		run(t, k)()
		require.True(t, strings.HasPrefix(w.FleetIdentity().Owner, "drover-"))
	})
}
