package sandbox

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

// TestDescriptorsAreGivenBack is not parallel: it counts those of the whole process.
func TestDescriptorsAreGivenBack(t *testing.T) { // see above
	b := newBench(t)
	cycle := func() {
		h := b.warm(t, nil)
		drivertest.Sh(t, h, "true")
		require.NoError(t, h.Destroy(t.Context()))
		task := b.run(t, b.spec(t, map[string]any{"command": "/bin/true"}))
		_, err := task.Wait(t.Context())
		require.NoError(t, err)
		require.NoError(t, task.Destroy(t.Context()))
	}
	cycle()
	before := descriptors(t)
	for range 10 {
		cycle()
	}
	require.Less(t, descriptors(t), before+5)
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}
