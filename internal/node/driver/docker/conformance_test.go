package docker

import (
	"testing"

	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conform(t, "runc", nil)
}

// TestConformanceOfGVisor is the same with a kernel between, hostile programs included.
func TestConformanceOfGVisor(t *testing.T) {
	t.Parallel()
	conform(t, "runsc", map[drivertest.Ability]string{
		drivertest.Groups: "the machine's control groups hold the whole container, not single executions",
		drivertest.Guard:  "gVisor lets a container's root look into its first process and kill it: its own container ends with it",
	})
}

func conform(t *testing.T, runtime string, missing map[drivertest.Ability]string) {
	t.Helper()
	b := newBench(t)
	drivertest.Run(t, drivertest.Harness{
		New: func(*testing.T) driver.Driver { return b.restart(t).Driver }, // closed after the suite, which still destroys with it
		Config: func(p drivertest.Program) map[string]any {
			return map[string]any{
				"image":        busybox,
				"network_mode": "none",
				"runtime":      runtime,
				"command":      "/bin/sh",
				"args":         []any{"-c", p.ShellScript()},
			}
		},
		Missing:   missing,
		Leftovers: func(t *testing.T) []string { t.Helper(); return b.containers(t) },
	})
}
