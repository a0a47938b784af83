package dockererr

import (
	"context"
	"net"
	"os"
	"syscall"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// TestASocketWithoutPermission is told as that, with the way to mend it: a daemon is there.
func TestASocketWithoutPermission(t *testing.T) {
	t.Parallel()
	noDial := func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", syscall.EACCES)}
	}
	refused, err := client.New(client.WithHost("unix:///x"), client.WithDialContext(noDial))
	require.NoError(t, err)
	_, err = refused.Info(t.Context(), client.InfoOptions{})
	err = Of(err)
	require.Equal(t, drover.Forbidden, drover.CodeOf(err))
	require.ErrorContains(t, err, "permission denied")
	require.ErrorContains(t, err, "usermod -aG docker")
	require.NoError(t, refused.Close())
}

func TestAnswersHaveCodes(t *testing.T) {
	t.Parallel()
	require.NoError(t, Of(nil))
	for want, err := range map[drover.Code]error{
		drover.NotFound: cerrdefs.ErrNotFound, drover.Invalid: cerrdefs.ErrInvalidArgument, drover.Conflict: cerrdefs.ErrConflict,
		drover.Forbidden: cerrdefs.ErrUnauthenticated, drover.Unavailable: cerrdefs.ErrUnavailable, drover.Internal: cerrdefs.ErrDataLoss,
	} {
		require.Equal(t, want, drover.CodeOf(Of(err)), "%v", err)
		require.ErrorIs(t, Of(err), err)
	}
	require.Equal(t, drover.Forbidden, drover.CodeOf(Of(cerrdefs.ErrPermissionDenied)))
	require.Equal(t, context.Canceled, Of(context.Canceled), "a context's end is nobody's answer")
}
