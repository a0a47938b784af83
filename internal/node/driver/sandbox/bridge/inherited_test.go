package bridge

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/clock"
)

// TestPortThatAChildStillHas: whoever the agent was just starting when it closed its ports has their sockets for a moment.
func TestPortThatAChildStillHas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &Forwarder{clock: clock.Wall{}}
		begin := time.Now()
		free := func() error {
			if time.Since(begin) < inheritedWait/2 {
				return unix.EADDRINUSE
			}
			return nil
		}
		require.NoError(t, f.freed(free))
		require.ErrorIs(t, f.freed(func() error { return unix.EADDRINUSE }), unix.EADDRINUSE)
		require.Equal(t, inheritedWait*3/2, time.Since(begin))
		require.ErrorIs(t, f.freed(func() error { return io.EOF }), io.EOF)
		require.Equal(t, inheritedWait*3/2, time.Since(begin))
	})
}
