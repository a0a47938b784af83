package optional

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAMissingValueIsZeroOrTheFallback(t *testing.T) {
	t.Parallel()
	require.Zero(t, Value[int](nil))
	require.Equal(t, 3, Value(new(3)))
	require.Equal(t, 7, Or(nil, 7))
	require.Equal(t, 0, Or(new(0), 7), "a zero that was given counts")
	require.True(t, Or(nil, true))
	require.False(t, Or(new(false), true))
}

func TestADefaultReplacesOnlyWhatIsNotSet(t *testing.T) {
	t.Parallel()
	text, number := "", 5
	Default(&text, "default")
	Default(&number, 9)
	require.Equal(t, "default", text)
	require.Equal(t, 5, number)

	var missing *int
	zero := new(0)
	DefaultPointer(&missing, 4)
	DefaultPointer(&zero, 4)
	require.Equal(t, 4, *missing)
	require.Equal(t, 0, *zero, "a zero that was given counts")
}

func TestAnOverrideOfZeroChangesNothing(t *testing.T) {
	t.Parallel()
	text, number := "job", 5
	Override(&text, "")
	Override(&number, 8)
	require.Equal(t, "job", text)
	require.Equal(t, 8, number)
}
