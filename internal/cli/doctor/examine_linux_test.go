package doctor

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDockersSocketIsThereWithoutPermission: that is no missing daemon.
func TestDockersSocketIsThereWithoutPermission(t *testing.T) {
	t.Parallel()
	require.Contains(t, dockerFinding("/s", fmt.Errorf("dial: %w", syscall.EACCES)).Says, "no permission for /s")
	require.Contains(t, dockerFinding("/s", syscall.ECONNREFUSED).Says, "no daemon answers at /s")
	require.Equal(t, findingOK, dockerFinding("/s", nil).State)
}
