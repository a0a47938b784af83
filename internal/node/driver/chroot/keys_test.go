package chroot

import (
	"testing"

	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

// TestNomadsKeys: those of Nomad's drivers exec and java 2.0: drivers/exec and drivers/java, taskConfigSpec.
func TestNomadsKeys(t *testing.T) {
	t.Parallel()
	common := []drivertest.Key{
		{Name: "args", With: []any{"a"}},
		{Name: "cap_add", With: []any{"net_raw"}},
		{Name: "cap_drop", With: []any{"chown"}},
		{Name: "ipc_mode", With: "private"},
		{Name: "pid_mode", With: "host", Fate: drivertest.Refused},
		{Name: "work_dir", With: "/a"},
	}
	for name, own := range map[string][]drivertest.Key{
		Exec: {
			{Name: "command", With: "b"},
		},
		Java: {
			{Name: "class", With: "a"},
			{Name: "class_path", With: "a"},
			{Name: "jar_path", With: "a"},
			{Name: "jvm_options", With: []any{"a"}},
		},
	} {
		d := newDriver(name, Config{HostIPC: true, AllowCaps: []string{"all"}})
		drivertest.WalkKeys(t, append(own, common...), map[string]any{}, func(config map[string]any) (any, error) {
			return d.parse(config)
		}, Keys(name), []string{"pids_limit"})
	}
}
