package program

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/node/supervisor/spawn"
)

// Without root a user namespace has one id, and the kernel calls all others invalid arguments.
func TestAnIDThatTheNamespaceLacks(t *testing.T) {
	t.Parallel()
	err := explain(&spawn.Error{Step: spawn.StepUser, Errno: syscall.EINVAL}, "id", "/")
	require.ErrorContains(t, err, "no such user id")
	err = explain(&spawn.Error{Step: spawn.StepUser, Errno: syscall.EPERM}, "id", "/")
	require.EqualError(t, err, "changing the user: operation not permitted")
}
