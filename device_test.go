package drover

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDeviceAttribute(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"4 GiB": "4 GiB", "250W": "250 W", " 1.50 GHz": "1.5 GHz", "true": "true", "RTX 4090": "RTX 4090", "12 apples": "12 apples",
		"": "", "-3": "-3", "550.54.15": "550.54.15", "MiB": "MiB", "16 GB/s": "16 GB/s",
	} {
		require.Equal(t, want, ParseDeviceAttribute(text).Text(), text)
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
		order, ok := ParseDeviceAttribute(c.a).Compare(ParseDeviceAttribute(c.b))
		require.Equal(t, c.ok, ok, "%s ? %s", c.a, c.b)
		require.Equal(t, c.order, order, "%s ? %s", c.a, c.b)
	}
}

// A group holds attributes as any decoder leaves them.
func TestDeviceAttributeOfAGroup(t *testing.T) {
	t.Parallel()
	yes, half := true, 0.5
	d := &NodeDeviceResource{Attributes: map[string]any{
		"memory": map[string]any{"Int": uint64(4), "Unit": "GiB"}, "json": map[string]any{"Int": 15360.0, "Unit": "MiB"},
		"half": DeviceAttribute{Float: &half, Unit: "W"}.Record(), "on": DeviceAttribute{Bool: &yes}.Record(),
		"text": DeviceText("550").Record(), "plain": "x", "number": 16,
	}}
	for name, want := range map[string]string{
		"memory": "4 GiB", "json": "15360 MiB", "half": "0.5 W", "on": "true", "text": "550", "plain": "x", "number": "16",
	} {
		a, ok := d.Attribute(name)
		require.True(t, ok, name)
		require.Equal(t, want, a.Text(), name)
	}
	_, ok := d.Attribute("none")
	require.False(t, ok)
}
