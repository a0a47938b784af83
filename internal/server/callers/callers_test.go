package callers

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/control/access"
	"github.com/drover-project/drover/internal/rights"
)

// state knows a token once it has caught up.
type state struct {
	has    atomic.Bool
	asked  atomic.Int32
	holder *rights.Caller
}

func (s *state) Resolve(secret acl.Secret) (*rights.Caller, error) {
	s.asked.Add(1)
	if secret == "expired" {
		return nil, access.ErrExpired
	}
	if s.has.Load() && secret == "new" {
		return s.holder, nil
	}
	return nil, access.ErrNoToken
}

// A token that the leader has already is known at a follower after a moment, and those who ask at once share the rounds.
func TestATokenThatWasJustMade(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, rounds, leads := &state{holder: &rights.Caller{}}, 0, false
		catchUp := func(context.Context) error {
			rounds++
			time.Sleep(time.Millisecond) // of the bubble
			s.has.Store(true)
			return nil
		}
		k := &Knowing{Resolver: s, Leads: func() bool { return leads }, Clock: clock.Wall{}, Life: t.Context(), CatchUp: catchUp}
		_, err := k.Resolve("expired")
		require.ErrorIs(t, err, access.ErrExpired)
		leads = true
		_, err = k.Resolve("new")
		require.ErrorIs(t, err, access.ErrNoToken, "a leader knows all")
		require.Zero(t, rounds)

		leads = false
		caller, err := k.Resolve("new")
		require.NoError(t, err)
		require.Same(t, s.holder, caller)
		require.Equal(t, 1, rounds)
		_, err = k.Resolve("new")
		require.NoError(t, err)
		require.Equal(t, 1, rounds, "who is known needs none")

		start, done := time.Now(), make(chan error)
		for range 1000 {
			go func() { // ends with its answer
				_, err := k.Resolve("wrong")
				done <- err
			}()
		}
		for range 1000 {
			require.ErrorIs(t, <-done, access.ErrNoToken)
		}
		require.LessOrEqual(t, rounds, 3, "they share")
		require.Less(t, time.Since(start), 100*time.Millisecond)
		synctest.Wait()
	})
}

// Without a leader a wrong token is refused after a while.
func TestATokenWhileNobodyLeads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		catchUp := func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		k := &Knowing{Resolver: &state{}, Leads: func() bool { return false }, Clock: clock.Wall{}, Life: t.Context(), CatchUp: catchUp}
		start := time.Now()
		_, err := k.Resolve("wrong")
		require.ErrorIs(t, err, access.ErrNoToken)
		require.Equal(t, catchUpFor, time.Since(start))
		time.Sleep(time.Second) // of the bubble: the last round has ended
	})
}
