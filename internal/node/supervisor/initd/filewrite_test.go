package initd

import (
	"testing"

	"github.com/stretchr/testify/require"

	"drover"
)

// Only what is to be emptied is asked here: a test that empties the root once would be one too many.
func TestTheRootIsNotEmptied(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"/*", "//*"} {
		_, err := emptied(p)
		require.Equal(t, drover.Invalid, drover.CodeOf(err), p)
	}
	dir, err := emptied("/work/*")
	require.NoError(t, err)
	require.Equal(t, "/work", dir)
}
