package drivertest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/node/driver"
)

// Spec is a small task in an allocation of its own below the folder, for tests of one driver.
func Spec(t testing.TB, dir string, config map[string]any) driver.Spec {
	t.Helper()
	alloc := id.Random{}.New()
	top := filepath.Join(dir, "alloc", alloc)
	dirs := driver.Dirs{
		Alloc: top, Shared: filepath.Join(top, "alloc"), Task: filepath.Join(top, "t"), Local: filepath.Join(top, "t/local"),
		Secrets: filepath.Join(top, "t/secrets"), State: filepath.Join(dir, "supervisor", alloc, "t"),
	}
	for _, d := range []string{filepath.Join(dirs.Shared, "logs"), dirs.Local, dirs.Secrets} {
		require.NoError(t, os.MkdirAll(d, 0o755))
	}
	require.NoError(t, os.Chmod(dirs.Local, 0o777)) // as the agent makes it
	return driver.Spec{
		AllocID: alloc, TaskName: "t", ID: alloc + "/t/00000000", Config: config, Dirs: dirs, MemoryMB: 128, CPUMHz: 500,
		Log: driver.LogConfig{Dir: filepath.Join(dirs.Shared, "logs"), MaxFiles: 2, MaxFileSize: 1 << 20},
		Env: map[string]string{"NOMAD_TASK_DIR": dirs.Local, "GREETING": "hello from " + dirs.Local},
	}
}
