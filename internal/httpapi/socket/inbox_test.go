package socket_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi/socket"
)

func TestPutEndsWithItsContext(t *testing.T) {
	t.Parallel()
	c, inbox := socket.New(nil, clock.Wall{}), socket.NewInbox[string]()
	require.True(t, inbox.Put(t.Context(), c, "huge", 16<<20), "alone")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.False(t, inbox.Put(ctx, c, "small", 1))
	got, ok := inbox.Take(t.Context())
	require.True(t, ok)
	require.Equal(t, "huge", got)
	require.True(t, inbox.Put(ctx, c, "small", 1))
	_, _ = inbox.Take(t.Context())
	_, ok = inbox.Take(ctx)
	require.False(t, ok)
}

// One client whose program read no stdin kept 64 messages of 16 MiB in memory.
func TestAnInboxIsBoundedInItemsAndBytes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ size, want int }{
		{size: 0, want: 64}, {size: 1, want: 64}, {size: 256 << 10, want: 4}, {size: 16 << 20, want: 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c, inbox := socket.New(nil, clock.Wall{}), socket.NewInbox[int]()
			put := 0
			go func() { // ends with ctx
				for inbox.Put(ctx, c, put, tc.size) {
					put++
				}
			}()
			synctest.Wait()
			require.Equal(t, tc.want, put)
			for want := range 100 { // and all arrive, in order
				got, _ := inbox.Take(ctx)
				require.Equal(t, want, got)
			}
			synctest.Wait()
			require.Equal(t, 100+tc.want, put)
			cancel()
			synctest.Wait()
		})
	}
}
