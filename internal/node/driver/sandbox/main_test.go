package sandbox

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
	"github.com/drover-project/drover/internal/node/driver/sandbox/bridge"
	"github.com/drover-project/drover/internal/node/image"
	"github.com/drover-project/drover/internal/node/supervisor"
	"github.com/drover-project/drover/internal/sharetest"
)

func TestMain(m *testing.M) { drivertest.Main(m) }

// bench is a driver on folders of its own.
type bench struct {
	*Driver
	dir     string
	parent  string
	network bridge.Config // of newBridgeBench
}

// newBench returns a driver as an agent with root has it, and checks at the end that nothing was left.
func newBench(t testing.TB, change ...func(*Config)) *bench {
	t.Helper()
	sharetest.Take(t)
	dir := t.TempDir()
	if _, bench := t.(*testing.B); bench { // as /run is: ext4 takes a millisecond for each of a start's files
		var err error
		dir, err = os.MkdirTemp("/dev/shm", "drover-bench-*")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	}
	parent := drivertest.GroupParent(t)
	groups, err := cgroup.New(cgroup.Config{Parent: parent})
	if os.Geteuid() == 0 {
		require.NoError(t, err)
	}
	binary, err := supervisor.Binary(dir)
	require.NoError(t, err)
	cfg := Config{
		Dir: filepath.Join(dir, "sandbox"), Binary: binary, Cgroups: groups, Clock: clock.Wall{}, CoreMHz: 1000,
		Log:    slog.New(slog.DiscardHandler),
		Images: image.NewStore(image.Options{Dir: filepath.Join(dir, "images"), Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler)}),
	}
	for _, c := range change {
		c(&cfg)
	}
	b := &bench{Driver: New(cfg), dir: dir, parent: parent}
	t.Cleanup(func() {
		if groups != nil {
			left, err := groups.List()
			require.NoError(t, err)
			require.Empty(t, left, "cgroups left behind")
			require.NoError(t, groups.Close(clock.Wall{}))
		}
		require.Empty(t, b.leftovers(t))
		states, err := filepath.Glob(filepath.Join(dir, "supervisor", "*", "*"))
		require.NoError(t, err)
		require.Empty(t, states, "files left behind")
	})
	return b
}

// spec of a task in an allocation of its own.
func (b *bench) spec(t testing.TB, config map[string]any) driver.Spec {
	t.Helper()
	return drivertest.Spec(t, b.dir, config)
}

func (b *bench) warm(t testing.TB, config map[string]any) *handle {
	t.Helper()
	spec := b.spec(t, config)
	spec.Pool = true
	return b.run(t, spec)
}

func (b *bench) run(t testing.TB, spec driver.Spec) *handle {
	t.Helper()
	return drivertest.Start(t, b, spec).(*handle)
}

// leftovers lists processes of its sandboxes, by control group and by path, and mounts.
func (b *bench) leftovers(t testing.TB) (found []string) {
	t.Helper()
	procs, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	for _, p := range procs {
		groups, _ := os.ReadFile(p + "/cgroup")
		line, _ := os.ReadFile(p + "/cmdline")
		if strings.Contains(string(groups), b.parent+"/") || strings.Contains(string(line), b.dir) && p != fmt.Sprintf("/proc/%d", os.Getpid()) {
			found = append(found, fmt.Sprintf("%s %q %s", p, line, groups))
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, b.dir) {
			found = append(found, line)
		}
	}
	return found
}
