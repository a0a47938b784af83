package docker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

func TestWarmRunner(t *testing.T) {
	t.Parallel()
	h := newBench(t).warm(t, nil)
	r := drivertest.Sh(t, h, "echo hello; id -u; exit 3")
	require.Equal(t, "hello\n1000\n", r.Out)
	require.Equal(t, 3, r.Receipt.ExitCode)
}
