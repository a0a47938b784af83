package device

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAttribute(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"4 GiB": "4 GiB", "250W": "250 W", " 1.50 GHz": "1.5 GHz", "true": "true", "RTX 4090": "RTX 4090", "12 apples": "12 apples",
		"": "", "-3": "-3", "550.54.15": "550.54.15", "MiB": "MiB", "16 GB/s": "16 GB/s",
	} {
		require.Equal(t, want, Parse(text).Text(), text)
	}
	for _, c := range []struct {
		a, b  string
		order int
		ok    bool
	}{
		{"4 GiB", "4096 MiB", 0, true},
		{"4 GiB", "4 GB", 1, true},
		{"4 kB", "4 KB", 0, true},
		{"1.5 GHz", "1590 MHz", -1, true},
		{"250 W", "0.3 kW", -1, true},
		{"5", "5.5", -1, true},
		{"9007199254740993", "9007199254740992", 1, true},
		{"4096", "4096 MiB", 0, false},
		{"1 W", "1 MHz", 0, false},
		{"1 MB/s", "1 MB", 0, false},
		{"a", "b", -1, true},
		{"true", "true", 0, true},
		{"true", "1", 0, false},
		{"a", "1", 0, false},
	} {
		order, ok := Parse(c.a).Compare(Parse(c.b))
		require.Equal(t, c.ok, ok, "%s ? %s", c.a, c.b)
		require.Equal(t, c.order, order, "%s ? %s", c.a, c.b)
	}
}
