package sharetest

import (
	"os"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/flock"
)

// TestOneShareATest: its subtests have the same one, so that no test waits for itself.
func TestOneShareATest(t *testing.T) { //nolint:paralleltest // it looks at all shares of the process
	Take(t)
	Take(t)
	held := shares[t.Name()].slot
	t.Run("below", func(t *testing.T) {
		Take(t)
		require.Same(t, held, shares["TestOneShareATest"].slot)
	})
	require.Equal(t, 2, shares[t.Name()].users)
}

// TestSharesAreBounded: one more than there are waits for one that is given back.
func TestSharesAreBounded(t *testing.T) { //nolint:paralleltest // it takes all shares of the machine
	before := folder
	folder = sync.OnceValue(t.TempDir)
	defer func() { folder = before }()
	var held []*os.File
	for range perProcessor * runtime.NumCPU() {
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
