package sandbox

import (
	"path/filepath"
	"testing"

	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	drivertest.Run(t, drivertest.Harness{
		New: func(t *testing.T) driver.Driver {
			t.Helper()
			cfg := b.cfg
			cfg.Dir = filepath.Join(cfg.Dir, t.Name())
			return New(cfg)
		},
		Config: func(p drivertest.Program) map[string]any {
			return map[string]any{"command": "/bin/sh", "args": []any{"-c", p.ShellScript()}}
		},
		Leftovers: func(t *testing.T) []string {
			t.Helper()
			names, err := b.cfg.Cgroups.List()
			if err != nil {
				t.Fatal(err)
			}
			return names
		},
	})
}
