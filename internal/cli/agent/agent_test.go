package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/optional"
)

// execute runs "drover agent" with a function that keeps the configuration instead of running an agent.
func execute(t *testing.T, args ...string) (out string, cfg *config.Agent, err error) {
	t.Helper()
	var b bytes.Buffer
	app := &term.App{Out: &b, Err: io.Discard, Getenv: func(string) string { return "" }, Clock: clock.Wall{}}
	c := Command(app, func(_ context.Context, got *config.Agent, _ func() (*config.Agent, error), _ io.Writer, ready func(string)) error {
		cfg = got
		ready("here:1")
		return nil
	})
	c.SetArgs(args)
	c.SilenceErrors, c.SilenceUsage = true, true
	err = c.ExecuteContext(t.Context())
	return b.String(), cfg, err
}

func TestFlagsGoOverFilesAndDefaults(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "agent.hcl")
	require.NoError(t, os.WriteFile(file, []byte("datacenter = \"dc7\"\nname = \"file\"\nserver {\n  enabled = false\n}\n"), 0o600))
	out, cfg, err := execute(t, "--dev", "--config", file, "--node", "flag", "--http-port", "0", "--node-class", "big", "--meta", "a=b",
		"--log-json")
	require.NoError(t, err)
	require.Equal(t, "==> Drover agent is serving on http://here:1\n==> The page is http://here:1/ui/\n", out)
	require.Equal(t, "flag", cfg.Name)
	require.Equal(t, "dc7", cfg.Datacenter)
	require.Zero(t, cfg.Ports.HTTP)
	require.Equal(t, "big", cfg.Client.NodeClass)
	require.Equal(t, map[string]string{"a": "b"}, cfg.Client.Meta)
	require.True(t, optional.Value(cfg.LogJSON))
	require.True(t, optional.Value(cfg.Server.Enabled), "-dev runs both planes, whatever the files say")
}

func TestTheEffectiveConfigurationIsPrinted(t *testing.T) {
	t.Parallel()
	out, _, err := execute(t, "config", "--dev")
	require.NoError(t, err)
	var cfg map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &cfg))
	require.Equal(t, "127.0.0.1", cfg["bind_addr"])
	require.NotContains(t, cfg, "log_file", "nobody set it")
	file := filepath.Join(t.TempDir(), "printed.json")
	require.NoError(t, os.WriteFile(file, []byte(out), 0o600))
	again, _, err := execute(t, "config", "--dev", "--config", file)
	require.NoError(t, err)
	require.Equal(t, out, again, "what it prints is a file again")
}

func TestWhatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	_, cfg, err := execute(t, "--demo")
	require.ErrorContains(t, err, "-demo goes with -dev")
	require.Nil(t, cfg)
	_, _, err = execute(t, "--config", filepath.Join(t.TempDir(), "none.hcl"))
	require.Error(t, err)
	_, err = LoadConfig([]string{filepath.Join(t.TempDir(), "none.hcl")})
	require.Error(t, err)
}

// TestConfigurationsAreCheckedWithoutAnAgent: all that is wrong is told, and what of Nomad's has no effect.
func TestConfigurationsAreCheckedWithoutAnAgent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"good.hcl": "data_dir = \"/data\"\nserver {\n  enabled = true\n}\ndisable_update_check = true\n",
		"bad.hcl":  "data_dri = \"/data\"\nports {\n  http = \"many\"\n}\n",
		"none.hcl": "data_dir = \"/data\"\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for file, want := range map[string][]string{
		"good.hcl": {
			"The configuration is valid.\n", "Warning: disable_update_check is Nomad's and has no effect here: nothing is sent to anybody\n", "",
		},
		"bad.hcl":  {"", "", `Did you mean "data_dir"?`},
		"none.hcl": {"", "", "neither server nor client is enabled"},
	} {
		var out, says bytes.Buffer
		app := &term.App{Out: &out, Err: &says, Getenv: func(string) string { return "" }, Clock: clock.Wall{}}
		c := ConfigCommand(app)
		c.SetArgs([]string{"validate", filepath.Join(dir, file)})
		c.SilenceErrors, c.SilenceUsage = true, true
		err := c.ExecuteContext(t.Context())
		require.Equal(t, want[:2], []string{out.String(), says.String()}, file)
		if want[2] == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want[2])
		}
	}
}
