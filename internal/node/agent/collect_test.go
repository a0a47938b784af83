package agent

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A disk of which much is kept back is not full: counted against its whole size, this one would be at 80 %, and the
// folders of tasks would be removed as soon as they ended.
func TestFullness(t *testing.T) {
	t.Parallel()
	bytes, inodes := fullness(&unix.Statfs_t{Blocks: 66_053_021, Bfree: 55_022_754, Bavail: 12_845_049, Files: 1000, Ffree: 250})
	require.InDelta(t, 46.2, bytes, 0.1)
	require.InDelta(t, 75, inodes, 0.01)
	bytes, inodes = fullness(&unix.Statfs_t{Blocks: 100, Bfree: 10, Bavail: 0})
	require.InDelta(t, 100, bytes, 0)
	require.Zero(t, inodes)
	bytes, _ = fullness(&unix.Statfs_t{})
	require.Zero(t, bytes, "no disk at all")
}
