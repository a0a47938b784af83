package sharetest

import (
	"os"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/flock"
)

// TestShares: all tests of a process have one share, and one process more than there are shares waits for one that is given
// back.
func TestShares(t *testing.T) { // it looks at the share of the process
	before := folder
	defer func() { folder = before }()
	folder = sync.OnceValue(t.TempDir)
	t.Run("one", func(t *testing.T) {
		Take(t)
		held := mine.slot
		t.Run("below", func(t *testing.T) {
			Take(t)
			require.Same(t, held, mine.slot)
			require.Equal(t, 2, mine.users)
		})
		require.Equal(t, 1, mine.users)
	})
	require.Zero(t, mine.users)

	var held []*os.File
	for range runtime.NumCPU() {
		f, err := acquire()
		require.NoError(t, err)
		held = append(held, f)
		t.Cleanup(func() { _ = f.Close() })
	}
	one := make(chan error)
	go func() { // ends with a share
		f, err := acquire()
		if err == nil {
			err = flock.Close(f)
		}
		one <- err
	}()
	select {
	case <-one:
		t.Fatal("it is one too many")
	default:
	}
	require.NoError(t, flock.Close(held[0]))
	require.NoError(t, <-one)
}
