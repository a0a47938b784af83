package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// TestPagesAreWhatTheCodeSays fails when a key, a command, a route or a code changed and its page did not.
func TestPagesAreWhatTheCodeSays(t *testing.T) {
	t.Parallel()
	all, err := pages(root)
	require.NoError(t, err)
	for path, want := range all {
		got, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err, "run `make docs`")
		require.Equal(t, want, string(got), "%s is stale: run `make docs`", path)
	}
}

func TestCommentOfAKeyIsSplit(t *testing.T) {
	t.Parallel()
	meaning, unit, standard := described("how late a heartbeat may be; duration; default 10s")
	require.Equal(t, []string{"how late a heartbeat may be", "duration", "10s"}, []string{meaning, unit, standard})
	meaning, unit, standard = described("first; second; default: cores")
	require.Equal(t, []string{"first; second", "", "cores"}, []string{meaning, unit, standard})
}
