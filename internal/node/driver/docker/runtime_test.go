package docker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"drover"
	"drover/internal/node/driver"
)

// TestRuntimes: the one that the daemon has is named or not, gVisor is refused with the reason.
func TestRuntimes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	require.Equal(t, "named\n", b.logged(t, b.spec(t, script2("echo named", map[string]any{"runtime": "runc"}))))
	_, err := b.Start(t.Context(), b.spec(t, script2("true", map[string]any{"runtime": "runsc"})))
	require.Equal(t, drover.NotImplemented, drover.CodeOf(err))
	require.ErrorContains(t, err, "gVisor")
	var start *driver.StartError
	require.ErrorAs(t, err, &start)
	require.False(t, start.Recoverable)
}
