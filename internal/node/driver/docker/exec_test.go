package docker

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWarmRunner(t *testing.T) {
	t.Parallel()
	h := newBench(t).warm(t, nil)
	r := h.sh(t, "echo hello; id -u; exit 3")
	require.Equal(t, "hello\n1000\n", r.out)
	require.Equal(t, 3, r.receipt.ExitCode)
}
