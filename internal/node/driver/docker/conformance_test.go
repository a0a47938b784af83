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
		New: func(*testing.T) driver.Driver { return b.restart(t).Driver }, // closed after the suite, which still destroys with it
		Config: func(p drivertest.Program) map[string]any {
			return map[string]any{"image": busybox, "network_mode": "none", "command": "/bin/sh", "args": []any{"-c", p.ShellScript()}}
		},
		Leftovers: func(t *testing.T) []string { t.Helper(); return b.containers(t) },
	})
}
