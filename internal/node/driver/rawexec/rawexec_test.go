package rawexec_test

import (
	"log/slog"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"drover"
	"drover/internal/clock"
	"drover/internal/node/cgroup"
	"drover/internal/node/driver"
	"drover/internal/node/driver/drivertest"
	"drover/internal/node/driver/rawexec"
	"drover/internal/node/supervisor/initd"
)

// The test program is its own drover-init.
func TestMain(m *testing.M) {
	if os.Args[0] == "drover-init" {
		os.Exit(initd.Main())
	}
	goleak.VerifyTestMain(m)
}

func config(t *testing.T) rawexec.Config {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	return rawexec.Config{Enabled: true, Binary: exe, CoreMHz: 1000, Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler)}
}

func harness(t *testing.T, cfg rawexec.Config) drivertest.Harness {
	t.Helper()
	h := drivertest.Harness{
		New: func(*testing.T) driver.Driver { return rawexec.New(cfg) },
		Config: func(p drivertest.Program) map[string]any {
			return map[string]any{"command": "/bin/sh", "args": []any{"-c", p.ShellScript()}}
		},
		Missing: map[drivertest.Ability]string{},
	}
	if os.Getuid() != 0 {
		h.Missing[drivertest.Users] = "an agent without root runs everything as itself"
	}
	return h
}

func TestConformance(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, harness(t, config(t)))
}

func TestConformanceWithControlGroups(t *testing.T) {
	t.Parallel()
	m, err := cgroup.New(cgroup.Config{Parent: "drover-rawexec-test"})
	if err != nil || m.Info().Version == cgroup.None {
		t.Logf("this machine has no control groups: %v", err)
		return
	}
	cfg := config(t)
	cfg.Cgroups = m
	drivertest.Run(t, harness(t, cfg))
}

func TestDisabledUnlessEnabled(t *testing.T) {
	t.Parallel()
	d := rawexec.New(rawexec.Config{Clock: clock.Wall{}})
	require.False(t, d.Fingerprint(t.Context()).Healthy)
	_, err := d.Start(t.Context(), driver.Spec{})
	require.Equal(t, drover.Forbidden, drover.CodeOf(err))
}
