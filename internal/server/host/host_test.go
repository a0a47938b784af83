package host

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/config/plugin"
)

// opened is a host whose drivers are those that the configuration says; it has no control groups.
func opened(t *testing.T, plugins map[string]plugin.Config) *Host {
	t.Helper()
	cfg := config.Default()
	for name, p := range plugins {
		cfg.Plugins = append(cfg.Plugins, &plugin.Block{Name: name, Config: &p})
	}
	h, err := Open(cfg, Deps{DataDir: t.TempDir(), Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(h.Close)
	return h
}

func names(h *Host) (list []string) {
	for _, d := range h.Drivers() {
		list = append(list, d.Name())
	}
	return list
}

// The configuration says which drivers the machine has, and tasks are checked by their own.
func TestDriversOfTheConfiguration(t *testing.T) {
	t.Parallel()
	off := plugin.Config{Enabled: new(false)}
	h := opened(t, map[string]plugin.Config{
		"raw_exec": {NoCgroups: new(true)}, "docker": off, "mock_driver": {Enabled: new(true)},
	})
	require.Equal(t, []string{"raw_exec", "sandbox", "exec", "java", "qemu", "mock_driver", "fake"}, names(h))
	require.Nil(t, h.Groups())
	require.True(t, h.SharedCores(), "without control groups no task has a processor alone")
	require.NotNil(t, h.Networks())

	asked, err := h.Validate(&drover.Task{Driver: "docker"})
	require.False(t, asked)
	require.NoError(t, err)
	asked, err = h.Validate(&drover.Task{Driver: "sandbox", Config: map[string]any{"no_such_key": 1}})
	require.True(t, asked)
	require.ErrorContains(t, err, "no_such_key")

	h = opened(t, map[string]plugin.Config{"raw_exec": {NoCgroups: new(true)}, "docker": off, "sandbox": off, "java": off, "qemu": off})
	require.Equal(t, []string{"raw_exec", "exec"}, names(h))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, h.CollectImages(ctx), "it ends with its context")
}

// A docker endpoint that cannot be one is an error of the configuration.
func TestDockerEndpointIsChecked(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Plugins = []*plugin.Block{
		{Name: "raw_exec", Config: &plugin.Config{NoCgroups: new(true)}},
		{Name: "docker", Config: &plugin.Config{Endpoint: "no scheme"}},
	}
	_, err := Open(cfg, Deps{DataDir: t.TempDir(), Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler)})
	require.Error(t, err)
}
