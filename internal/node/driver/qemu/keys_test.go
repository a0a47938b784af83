package qemu

import (
	"testing"

	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

// TestNomadsKeys: those of Nomad's qemu driver 2.0: drivers/qemu, taskConfigSpec.
func TestNomadsKeys(t *testing.T) {
	t.Parallel()
	drivertest.WalkKeys(t, []drivertest.Key{
		{Name: "accelerator", With: "kvm"},
		{Name: "args", With: []any{"a"}},
		{Name: "drive_interface", With: "virtio"},
		{Name: "graceful_shutdown", With: true},
		{Name: "guest_agent", With: true},
		{Name: "image_path", With: "b"},
		{Name: "port_map", With: []any{map[string]any{"http": 80}}},
		{Name: "emulator", With: "aarch64", Fate: drivertest.Refused},
		{Name: "machine_type", With: "q35"},
	}, map[string]any{"image_path": "a"}, func(config map[string]any) (any, error) { return New(Config{}).parse(config) }, Keys(), nil)
}
