package docker

import (
	"testing"

	"drover/internal/node/driver"
	"drover/internal/node/driver/drivertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	drivertest.Run(t, drivertest.Harness{
		New: func(t *testing.T) driver.Driver { t.Helper(); return b.restart(t).Driver },
		Config: func(p drivertest.Program) map[string]any {
			return map[string]any{"image": busybox, "network_mode": "none", "command": "/bin/sh", "args": []any{"-c", p.ShellScript()}}
		},
		Leftovers: func(t *testing.T) []string { t.Helper(); return b.containers(t) },
	})
}
