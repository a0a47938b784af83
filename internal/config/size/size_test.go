package size

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSizes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"": 7, "0": 0, "12": 12, "1M": 1_000_000, "1.5mb": 1_500_000, "64 KiB": 65536, "1b": 1,
		"2Gi": -1, "x": -1, "-1": -1, "1T": -1, "1.2.3": -1,
	} {
		got, err := Parse(text, 7)
		if want < 0 {
			require.Error(t, err, text)
			continue
		}
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}
