package drover

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/device"
)

// A group holds attributes as any decoder leaves them.
func TestDeviceAttributeOfAGroup(t *testing.T) {
	t.Parallel()
	yes, half := true, 0.5
	d := &NodeDeviceResource{Attributes: map[string]any{
		"memory": map[string]any{"Int": uint64(4), "Unit": "GiB"}, "json": map[string]any{"Int": 15360.0, "Unit": "MiB"},
		"half": device.Attribute{Float: &half, Unit: "W"}.Record(), "on": device.Attribute{Bool: &yes}.Record(),
		"text": device.Text("550").Record(), "plain": "x", "number": 16,
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
