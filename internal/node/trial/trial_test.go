package trial

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/cgroup"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/driver/drivertest"
	"github.com/drover-project/drover/internal/node/driver/rawexec"
	"github.com/drover-project/drover/internal/node/driver/sandbox"
	"github.com/drover-project/drover/internal/node/driver/sandbox/bridge"
	"github.com/drover-project/drover/internal/node/egress"
	"github.com/drover-project/drover/internal/node/image"
	"github.com/drover-project/drover/internal/node/supervisor"
	"github.com/drover-project/drover/internal/sharetest"
)

func TestMain(m *testing.M) { drivertest.Main(m) }

func TestSandboxHoldsThemAll(t *testing.T) {
	t.Parallel()
	dir, groups, binary := setup(t)
	policy := egress.Default()
	policy.Connections, policy.Allow = 24, []netip.Prefix{netip.MustParsePrefix("203.0.113.1/32")}
	network := bridge.New(bridge.Config{
		Name: drivertest.Bridge(t), Subnet: drivertest.Subnet(24), Egress: policy, Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler),
	})
	d := sandbox.New(sandbox.Config{
		Dir: filepath.Join(dir, "sandbox"), Binary: binary, Cgroups: groups, Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler),
		Bridge: network,
		Images: image.NewStore(image.Options{Dir: filepath.Join(dir, "images"), Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler)}),
	})
	list, err := Run(t.Context(), Config{
		Driver: d, Dir: t.TempDir(), Clock: clock.Wall{}, Groups: groups.List,
		Network: &Network{Gateway: network.Gateway().String(), Connections: 24, Target: "203.0.113.1"},
	})
	require.NoError(t, err)
	for _, f := range list {
		if f.Program == "learn of the machine and its load" {
			require.Contains(t, []State{Contained, Weak}, f.State, "%s", f.Says) // weak when the machine has a load
			continue
		}
		require.Equal(t, Contained, f.State, "%s: %s", f.Program, f.Says)
	}
	require.Greater(t, len(list), 21)
	require.NoError(t, d.Close())
}

// populate starts the two guests.
func (y *trial) populate(t *testing.T) {
	t.Helper()
	var err error
	y.neighbour, err = y.start(t.Context(), "neighbour")
	require.NoError(t, err)
	t.Cleanup(func() { y.neighbour.destroy(context.Background()) })
	y.evil, err = y.start(t.Context(), "evil")
	require.NoError(t, err)
	t.Cleanup(func() { y.evil.destroy(context.Background()) })
}

// TestItSeesWhatIsNotHeld: a driver without isolation is found out. Only by programs that do no harm there.
func TestItSeesWhatIsNotHeld(t *testing.T) {
	t.Parallel()
	_, groups, binary := setup(t)
	d := rawexec.New(rawexec.Config{Enabled: true, Binary: binary, Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler), Cgroups: groups})
	y := &trial{cfg: Config{Driver: plain{d}, Dir: t.TempDir(), Clock: clock.Wall{}, Groups: groups.List}, token: t.Name()}
	t.Cleanup(func() { // its neighbour's files are the machine's
		_ = os.Remove("/tmp/mine")
		_ = os.Remove("/dev/shm/mine")
	})
	y.populate(t)
	for _, p := range slices.Concat(refusals(), exposures()) {
		switch p.name {
		case "see other sandboxes", "reach the machine's network", "open other doors to the kernel", "learn of the machine and its load",
			"hold rights over the machine":
			state, says := y.try(t.Context(), p)
			require.Equal(t, Escaped, state, "%s: %s", p.name, says)
		}
	}
	y.survive(t.Context())
	require.Equal(t, Contained, y.findings[0].State, "%+v", y.findings)
}

// TestGuestsWithAKernelOfTheirOwn may reach that, and end themselves. There is none here, so it is claimed of a sandbox.
func TestGuestsWithAKernelOfTheirOwn(t *testing.T) {
	t.Parallel()
	dir, groups, binary := setup(t)
	d := sandbox.New(sandbox.Config{
		Dir: filepath.Join(dir, "sandbox"), Binary: binary, Cgroups: groups, Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler),
		Images: image.NewStore(image.Options{Dir: filepath.Join(dir, "images"), Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler)}),
	})
	y := &trial{cfg: Config{Driver: d, Dir: t.TempDir(), Clock: clock.Wall{}, Groups: groups.List, MemoryMB: 64}, token: t.Name()}
	y.populate(t)
	require.False(t, y.evil.hasOwnKernel(t.Context()))
	suicide := program{name: "x", run: func(ctx context.Context, y *trial) (string, State, error) {
		y.evil.destroy(ctx)
		return "", Contained, nil
	}}
	state, _ := y.try(t.Context(), suicide)
	require.Equal(t, Escaped, state)
	state, _ = y.try(t.Context(), ofKernel("x", "", "echo dmesg"))
	require.Equal(t, Escaped, state)
	y.ownKernel = true
	state, says := y.try(t.Context(), suicide)
	require.Equal(t, Weak, state, says)
	state, says = y.try(t.Context(), ofKernel("x", "", "echo dmesg"))
	require.Equal(t, Contained, state, "another one was started: %s", says)
	state, _ = y.try(t.Context(), refusal("x", "", "echo something else"))
	require.Equal(t, Escaped, state)
	y.neighbour.destroy(t.Context())
	state, _ = y.try(t.Context(), suicide)
	require.Equal(t, Escaped, state, "its neighbour is gone too")
}

// plain leaves out the options that raw_exec does not have.
type plain struct{ driver.Driver }

func (p plain) Start(ctx context.Context, spec driver.Spec) (driver.Handle, error) {
	spec.Config = nil
	return p.Driver.Start(ctx, spec)
}

func setup(t *testing.T) (dir string, groups *cgroup.Groups, binary string) {
	t.Helper()
	sharetest.Take(t)
	dir = t.TempDir()
	groups, err := cgroup.New(cgroup.Config{Parent: drivertest.GroupParent(t)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, groups.Close(clock.Wall{})) })
	binary, err = supervisor.Binary(dir)
	require.NoError(t, err)
	return dir, groups, binary
}
