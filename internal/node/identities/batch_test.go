package identities

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/exchange"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// control signs after a while, or fails as often as it is told to.
type control struct {
	mu    sync.Mutex
	calls []int
	fails int
	err   error
}

func (c *control) SignIdentities(
	ctx context.Context, nodeID string, wanted []exchange.IdentityRequest,
) ([]exchange.SignedIdentity, error) {
	time.Sleep(time.Second) // of the bubble
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, len(wanted))
	if c.fails > 0 {
		c.fails--
		return nil, c.err
	}
	out := make([]exchange.SignedIdentity, len(wanted))
	old := time.Unix(0, 0) // its clock is wrong by decades
	for i, w := range wanted {
		out[i] = exchange.SignedIdentity{Token: nodeID + "/" + w.AllocID, Made: old, Expires: old.Add(time.Hour)}
	}
	return out, nil
}

// TestBatches: what is asked for during a call goes together in the next one, in bounded calls, and each gets its own.
func TestBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &control{}
		b := New(c, "n", clock.Wall{})
		var all sync.WaitGroup
		for i := range 600 {
			all.Go(func() {
				id := fmt.Sprint(i)
				got, err := b.Sign(t.Context(), []exchange.IdentityRequest{{AllocID: id}, {AllocID: id + "b"}})
				if err != nil || len(got) != 2 || got[0].Token != "n/"+id || got[1].Token != "n/"+id+"b" {
					t.Errorf("%s: %v, %v", id, got, err)
				} else if time.Until(got[0].Expires) != time.Hour { // by the node's clock
					t.Errorf("%s: it ends %v", id, got[0].Expires)
				}
			})
		}
		all.Wait()
		synctest.Wait() // until the last call has gone
		sum := 0
		for _, n := range c.calls {
			require.LessOrEqual(t, n, exchange.MaxIdentities)
			sum += n
		}
		require.Equal(t, 1200, sum)
		require.Less(t, len(c.calls), 500)
		b.mu.Lock()
		defer b.mu.Unlock()
		require.False(t, b.busy)
		require.Nil(t, b.next)
	})
}

// TestTries: control is asked again while no server answers, for a bounded time; a refusal is one at once.
func TestTries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one := []exchange.IdentityRequest{{AllocID: "a"}}
		c := &control{fails: 3, err: drover.Errorf(drover.Unavailable, "no server")}
		b := New(c, "n", clock.Wall{})
		_, err := b.Sign(t.Context(), one)
		require.NoError(t, err)
		require.Len(t, c.calls, 4)
		c.fails = 100
		begin := time.Now()
		_, err = b.Sign(t.Context(), one)
		require.ErrorContains(t, err, "no server")
		require.Equal(t, 11*time.Second, time.Since(begin))
		c.fails, c.calls, c.err = 100, nil, drover.Errorf(drover.NotImplemented, "old")
		_, err = b.Sign(t.Context(), one)
		require.ErrorContains(t, err, "old")
		require.Len(t, c.calls, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err = b.Sign(ctx, one)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		synctest.Wait()
		time.Sleep(time.Minute)
		_, err = b.Sign(t.Context(), make([]exchange.IdentityRequest, exchange.MaxIdentities+1))
		require.ErrorContains(t, err, "more than 256")
	})
}
