package executor

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A runner came from another server while an execution was being started in it. Recovery found that at the node, took it up a second
// time, and its start and end were told twice.
func TestRecoveryLeavesWhatIsBeingStarted(t *testing.T) {
	t.Parallel()
	s, err := New(Config{}, Deps{})
	require.NoError(t, err)
	s.endRecovery()
	s.beginOwn("x")
	s.beginRecovery()
	require.True(t, s.known("x"))
	s.endRecovery()
	require.True(t, s.known("x"), "it is starting yet")
	s.beginRecovery()
	s.endOwn("x")
	require.True(t, s.known("x"), "the node may be asked yet, and this process may have forgotten it")
	s.endRecovery()
	require.False(t, s.known("x"))
	s.beginOwn("x")
	s.endOwn("x")
	require.False(t, s.known("x"), "nothing is kept of what was started")
}
