package chroot

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
	"github.com/drover-project/drover/internal/node/driver/sandbox"
	"github.com/drover-project/drover/internal/node/image"
	"github.com/drover-project/drover/internal/node/supervisor"
	"github.com/drover-project/drover/internal/sharetest"
)

func TestMain(m *testing.M) { drivertest.Main(m) }

// bench is a driver on folders of its own, with a sandbox driver behind it that has nothing to itself.
type bench struct {
	*Driver
	dir    string
	groups *cgroup.Groups
	remake func(name string) *Driver // the driver of the agent with the name, after a restart if it was there before
}

// newBench returns exec or java as an agent with root has it; nothing may be left at the end.
func newBench(t *testing.T, make func(Config) *Driver, change ...func(*Config)) *bench {
	t.Helper()
	sharetest.Take(t)
	b := &bench{dir: t.TempDir()}
	require.NoError(t, os.Chmod(b.dir, 0o755))
	var err error
	b.groups, err = cgroup.New(cgroup.Config{Parent: drivertest.GroupParent(t)})
	require.NoError(t, err)
	binary, err := supervisor.Binary(b.dir)
	require.NoError(t, err)
	images := image.NewStore(image.Options{Dir: filepath.Join(b.dir, "images"), Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler)})
	b.remake = func(name string) *Driver {
		cfg := Config{Images: images, Clock: clock.Wall{}, AllowHostNetwork: true}
		cfg.Sandbox = sandbox.New(sandbox.Config{
			Dir: filepath.Join(b.dir, "sandbox", name), Binary: binary, Cgroups: b.groups, Clock: clock.Wall{}, CoreMHz: 1000,
			Log: slog.New(slog.DiscardHandler), Images: images,
		})
		for _, c := range change {
			c(&cfg)
		}
		return make(cfg)
	}
	b.Driver = b.remake("")
	t.Cleanup(func() {
		left, err := b.groups.List()
		require.NoError(t, err)
		require.Empty(t, left, "cgroups left behind")
		require.NoError(t, b.groups.Close(clock.Wall{}))
		states, err := filepath.Glob(filepath.Join(b.dir, "supervisor", "*", "*"))
		require.NoError(t, err)
		require.Empty(t, states, "files left behind")
	})
	return b
}

// run starts a task and returns how it ended, with what it printed.
func (b *bench) run(t *testing.T, config map[string]any, change ...func(*driver.Spec)) (driver.Exit, string) {
	t.Helper()
	spec := drivertest.Spec(t, b.dir, config)
	for _, c := range change {
		c(&spec)
	}
	h := drivertest.Start(t, b, spec)
	exit, err := h.Wait(t.Context())
	require.NoError(t, err)
	return exit, logs(t, &spec)
}

// logs are both streams of a task.
func logs(t *testing.T, spec *driver.Spec) (text string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(spec.Log.Dir, "t.std*"))
	require.NoError(t, err)
	for _, n := range names {
		data, err := os.ReadFile(n)
		require.NoError(t, err)
		text += string(data)
	}
	return text
}

// sh is the configuration of a script.
func sh(script string) map[string]any {
	return map[string]any{"command": "/bin/sh", "args": []any{"-c", script}}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	b := newBench(t, NewExec)
	drivertest.Run(t, drivertest.Harness{
		New:    func(t *testing.T) driver.Driver { t.Helper(); return b.remake(t.Name()) },
		Config: func(p drivertest.Program) map[string]any { return sh(p.ShellScript()) },
		Leftovers: func(t *testing.T) []string {
			t.Helper()
			names, err := b.groups.List()
			require.NoError(t, err)
			return names
		},
	})
}
