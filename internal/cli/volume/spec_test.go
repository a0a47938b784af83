package volume

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSizes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"0": 0, "12": 12, "12B": 12, "10GiB": 10 << 30, "10 GiB": 10 << 30, "1.5k": 1500,
		"20G": 20e9, "20gb": 20e9, "3Mi": 3 << 20, "1PiB": 1 << 50,
	} {
		got, ok := size(text)
		require.True(t, ok, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "GiB", "-1", "1 x", "1e99", "9999999PiB", "NaN", "1.2.3"} {
		_, ok := size(text)
		require.False(t, ok, text)
	}
}

// The example is a file that can be created.
func TestTheExample(t *testing.T) {
	t.Parallel()
	v, err := parse([]byte(example), "volume.host.hcl")
	require.NoError(t, err)
	v.Complete()
	require.NoError(t, v.Validate())
}
