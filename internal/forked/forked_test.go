package forked

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAProgramCanBeExecutedAtOnce: f.Close alone fails here within a few rounds.
func TestAProgramCanBeExecutedAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	var others sync.WaitGroup
	defer others.Wait()
	defer cancel()
	for range 4 {
		others.Go(func() {
			for ctx.Err() == nil {
				_ = exec.Command("true").Run()
			}
		})
	}
	for i := range 50 {
		path := filepath.Join(dir, fmt.Sprint(i))
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o700)
		require.NoError(t, err)
		_, err = f.WriteString("#!/bin/sh\n")
		require.NoError(t, err)
		require.NoError(t, Close(f))
		require.NoError(t, exec.Command(path).Run())
	}
}
