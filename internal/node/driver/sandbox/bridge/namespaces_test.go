package bridge

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNewNamespacesLeaveTheProcessWhereItIs: the first thread's namespace is what /proc/self and /proc/net show.
func TestNewNamespacesLeaveTheProcessWhereItIs(t *testing.T) { // others make namespaces too
	before, err := os.Readlink("/proc/self/ns/net")
	require.NoError(t, err)
	dir := t.TempDir()
	made := make(chan error)
	for i := range 100 {
		go func() { made <- NewNamespace(filepath.Join(dir, fmt.Sprint(i))) }() // ends with the namespace
	}
	for range 100 {
		require.NoError(t, <-made)
	}
	for i := range 100 {
		require.NoError(t, DropNamespace(filepath.Join(dir, fmt.Sprint(i))))
	}
	after, err := os.Readlink("/proc/self/ns/net")
	require.NoError(t, err)
	require.Equal(t, before, after)
}
