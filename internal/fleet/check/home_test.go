package check

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
	"github.com/drover-project/drover/internal/link"
)

func TestOnlyTheMachineOfTheCheckComesHome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := NewHome("10.0.0.1:1", clock.Wall{})
		require.Equal(t, "10.0.0.1:1", h.Address())
		require.Equal(t, drover.Unauthorized, drover.CodeOf(h.Admit(t.Context(), exchange.Tokens{Join: "guessed"}, nil)))
		require.NoError(t, h.Admit(t.Context(), exchange.Tokens{Join: h.Token()}, nil))
		name, err := h.Machine(h.Token())
		require.NoError(t, err)
		require.Equal(t, "check", name)
		_, err = h.Machine("guessed")
		require.Error(t, err)
		_, err = h.Certify(t.Context(), link.Applicant{Tokens: exchange.Tokens{Join: "guessed"}}, nil)
		require.Equal(t, drover.Unauthorized, drover.CodeOf(err))
		_, err = h.Certify(t.Context(), link.Applicant{Tokens: exchange.Tokens{Join: h.Token()}}, []byte("no request"))
		require.Equal(t, drover.Invalid, drover.CodeOf(err))
		first, err := h.Authority()
		require.NoError(t, err)
		again, err := h.Authority()
		require.NoError(t, err)
		require.Same(t, first, again)

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = h.Await(ctx)
		require.Equal(t, drover.Unavailable, drover.CodeOf(err))
		require.ErrorContains(t, err, "nobody called at 10.0.0.1:1")
		for range 2 {
			_, err = h.Register(t.Context(), &drover.Node{ID: "n"})
			require.NoError(t, err)
		}
		n, err := h.Await(t.Context())
		require.NoError(t, err)
		require.Equal(t, "n", n.ID)

		began := time.Now()
		work, err := h.Pull(t.Context(), "n", exchange.Seen{}, time.Second)
		require.NoError(t, err)
		require.Equal(t, uint64(1), work.Index)
		_, err = h.Pull(t.Context(), "n", exchange.Seen{Index: 1}, time.Second)
		require.NoError(t, err)
		require.Equal(t, time.Second, time.Since(began), "the first answer is at once, later ones wait")
	})
}

func TestWhatACheckBuys(t *testing.T) {
	t.Parallel()
	p := &fleet.Policy{Name: "p", Provider: "x", Zones: []string{"a", "b"}, Spot: fleet.SpotPrefer, Types: []fleet.InstanceType{
		{Name: "big", Price: 2, SpotPrice: 1}, {Name: "small", Price: 1, SpotPrice: 0.5},
	}}
	p.Canonicalize()
	for _, c := range []struct {
		ask  fleet.Check
		want string
	}{
		{fleet.Check{}, "x/small/a/spot"},
		{fleet.Check{Type: "big"}, "x/big/a/spot"},
		{fleet.Check{Type: "big", Zone: "b", Market: fleet.MarketOnDemand}, "x/big/b/on-demand"},
	} {
		o, err := Offered(p, c.ask)
		require.NoError(t, err)
		require.Equal(t, c.want, o.Key)
	}
	_, err := Offered(p, fleet.Check{Type: "huge"})
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	require.ErrorContains(t, err, `of type "huge"`)
	require.Equal(t, OwnerOf("/a", "x"), OwnerOf("/a", "x"))
	require.NotEqual(t, OwnerOf("/a", "x"), OwnerOf("/b", "x"))
	require.NotEqual(t, OwnerOf("/a", "x"), OwnerOf("/a", "y"))
}
