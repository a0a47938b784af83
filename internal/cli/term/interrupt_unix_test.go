//go:build !windows

package term

import (
	"context"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSignalsBecomeExitCodes(t *testing.T) {
	t.Parallel()
	ctx, stop := Interruptible(t.Context(), syscall.SIGUSR2)
	defer stop()
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGUSR2))
	<-ctx.Done()
	require.Equal(t, 128+int(syscall.SIGUSR2), InterruptCode(ctx))
	require.ErrorIs(t, context.Cause(ctx), context.Canceled)
	require.EqualError(t, context.Cause(ctx), syscall.SIGUSR2.String())
	left, leave := Leavable(t.Context())
	leave()
	<-left.Done()
	require.Equal(t, 130, InterruptCode(left), "leaving is as good as Ctrl-C")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, 130, InterruptCode(ended))
}
