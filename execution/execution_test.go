package execution

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// TestWhatHasContentIsWritten: who writes JSON by hand gives a path and a text.
func TestWhatHasContentIsWritten(t *testing.T) {
	t.Parallel()
	changes := []FileChange{
		{Path: "a", Text: new("x")},
		{Path: "b", Text: new("")},
		{Path: "c", Data: []byte("y")},
		{Path: "d", Data: []byte{}},
		{Path: "e", Write: true},
		{Path: "f", Mkdir: true},
		{Path: "g", Delete: true},
	}
	require.NoError(t, PrepareChanges(changes))
	require.Equal(t, []FileChange{
		{Path: "a", Write: true, Data: []byte("x")},
		{Path: "b", Write: true, Data: []byte{}},
		{Path: "c", Write: true, Data: []byte("y")},
		{Path: "d", Write: true, Data: []byte{}},
		{Path: "e", Write: true},
		{Path: "f", Mkdir: true},
		{Path: "g", Delete: true},
	}, changes)
	for _, bad := range []FileChange{
		{Path: "x"}, {Text: new("x")}, {Path: "x", Mkdir: true, Text: new("")}, {Path: "x", Text: new("x"), Data: []byte("x")},
	} {
		require.Equal(t, drover.Invalid, drover.CodeOf(PrepareChanges([]FileChange{bad})), bad)
	}
}
