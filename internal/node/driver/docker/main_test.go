package docker

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/dockerdtest"
	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
	"github.com/drover-project/drover/internal/node/supervisor"
	"github.com/drover-project/drover/internal/sharetest"
)

// endpoint of the daemon that TestMain started.
var endpoint string // of all tests

// The bounds of waiting for what others do.
const (
	patience = time.Minute
	tick     = 20 * time.Millisecond
)

const (
	busybox = "drover-test/busybox:1"
	bare    = "drover-test/bare:1"
)

// TestMain starts a docker daemon for the tests, and stops it. They need root and Debian's docker.io and busybox-static
// (scripts/deps). Whoever cannot have these says so: DROVER_TEST_DOCKER=off leaves the package's tests out.
func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if dockerdtest.Off() {
		fmt.Println("the docker driver is NOT TESTED: DROVER_TEST_DOCKER=off")
		return 0
	}
	drivertest.SweepGroupParents()
	daemon, err := dockerdtest.Start()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer func() { _ = daemon.Stop() }() // what is left is told by the next run
	endpoint = daemon.Endpoint
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Println(err)
		code = 1
	}
	return code
}

// bench is a driver on folders of its own.
type bench struct {
	*Driver
	dir string
}

func newBench(t testing.TB, change ...func(*Config)) *bench {
	t.Helper()
	sharetest.Take(t)
	dir, err := os.MkdirTemp("", "dd") // short: sockets have short names
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755)) // as an agent's folder is
	groups, err := cgroup.New(cgroup.Config{Parent: drivertest.GroupParent(t)})
	require.NoError(t, err)
	binary, err := supervisor.Binary(dir)
	require.NoError(t, err)
	cfg := Config{
		Endpoint: endpoint,
		Owner:    dir,
		Binary:   binary,
		Cgroups:  groups,
		Clock:    clock.Wall{},
		Log:      slog.New(slog.DiscardHandler),
		CoreMHz:  1000,
	}
	for _, c := range change {
		c(&cfg)
	}
	d, err := New(cfg)
	require.NoError(t, err)
	b := &bench{d, dir}
	t.Cleanup(func() {
		require.Empty(t, b.containers(t), "containers left behind")
		states, err := filepath.Glob(filepath.Join(dir, "supervisor", "*", "*"))
		require.NoError(t, err)
		require.Empty(t, states, "files left behind")
		require.NoError(t, d.Close())
		require.NoError(t, groups.Close(clock.Wall{}))
		require.NoError(t, os.RemoveAll(dir))
	})
	return b
}

// restart is what a new agent has: another driver on the same machine.
func (b *bench) restart(t testing.TB) *bench {
	t.Helper()
	d, err := New(b.cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return &bench{d, b.dir}
}

// containers of this driver, by name.
func (b *bench) containers(t testing.TB) []string {
	t.Helper()
	list := []string{"-H", b.cfg.Endpoint, "ps", "-a", "--filter", "label=" + labelOwner + "=" + b.cfg.Owner, "--format", "{{.Names}}"}
	out, err := exec.Command("docker", list...).
		CombinedOutput()
	require.NoError(t, err, string(out))
	return strings.Fields(string(out))
}

// spec of a task in an allocation of its own.
func (b *bench) spec(t testing.TB, config map[string]any) driver.Spec {
	t.Helper()
	all := map[string]any{"image": busybox, "network_mode": "none"}
	for k, v := range config {
		all[k] = v
	}
	return drivertest.Spec(t, b.dir, all)
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
