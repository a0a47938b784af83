package diskuse

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/clock"
)

// TestFoldersNestedTooDeeplyEndATask: they take so little that a running task's are found only once a minute.
func TestFoldersNestedTooDeeplyEndATask(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", 300)), 0o700))
	var reason error
	w := &Watched{Dirs: []string{dir}, MB: 10, Pids: func() []int { return nil }, Over: func(_ context.Context, why error) { reason = why }}
	(&Watch{Clock: clock.Wall{}}).look(t.Context(), []*Watched{w})
	require.ErrorContains(t, reason, "nested too deeply")
	require.True(t, w.over)
}

func TestFoldersAreMeasuredWhenTheyMayHaveGrown(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	one, other := unix.Fsid{Val: [2]int32{1}}, unix.Fsid{Val: [2]int32{2}}
	w := &Watched{
		at: at, took: time.Millisecond, free: map[unix.Fsid]Usage{one: {Bytes: 1000, Files: 1000}, other: {}}, room: Usage{Bytes: 100, Files: 10},
	}
	for _, c := range []struct {
		after        time.Duration
		bytes, files int64
		want         bool
	}{
		{time.Second, 1000, 1000, false},
		{time.Second, 901, 991, false},
		{time.Second, 900, 1000, true},
		{time.Second, 1000, 990, true},
		{time.Millisecond, 0, 0, false}, // it was measured right before
		{stale, 2000, 2000, true},
	} {
		require.Equal(
			t, c.want, w.due(at.Add(c.after), map[unix.Fsid]Usage{one: {Bytes: c.bytes, Files: c.files}, other: {Bytes: 1 << 30, Files: 99}}), "%+v",
			c,
		)
	}
	require.True(t, (&Watched{}).due(at, nil), "never measured")
}

// TestFoldersAreCountedTogether, in whatever order.
func TestFoldersAreCountedTogether(t *testing.T) {
	t.Parallel()
	a, b := t.TempDir(), t.TempDir()
	fill(t, filepath.Join(a, "f"), 6*mb)
	w := &Watched{Dirs: []string{a, b, "/no/such/folder"}, MB: 10, What: "it", By: "so", Pids: func() []int { return nil }}
	_, err := w.used()
	require.NoError(t, err)
	fill(t, filepath.Join(b, "f"), 6*mb)
	var reason error
	w.Over = func(_ context.Context, why error) { reason = why }
	(&Watch{Clock: clock.Wall{}}).look(t.Context(), []*Watched{w})
	require.EqualError(t, reason, "it held more than 10 MB (so)")
}
