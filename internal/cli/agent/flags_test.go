package agent

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/optional"
)

func TestFlagsOfANode(t *testing.T) {
	t.Parallel()
	_, cfg, err := execute(t, "--client", "--servers", "a:4647", "--data-dir", "/data", "--join-token", "secret", "--node-pool", "gpu",
		"--dc", "dc9", "--region", "eu", "--bind", "127.0.0.2", "--rpc-port", "0", "--log-level", "debug")
	require.NoError(t, err)
	require.True(t, optional.Value(cfg.Client.Enabled))
	require.False(t, optional.Value(cfg.Server.Enabled))
	require.Equal(t, []string{"a:4647"}, cfg.Client.Servers)
	require.Equal(t, "secret", cfg.Client.JoinToken)
	require.Equal(t, "gpu", cfg.Client.NodePool)
	require.Equal(t, []string{"dc9", "eu", "127.0.0.2", "/data", "debug"},
		[]string{cfg.Datacenter, cfg.Region, cfg.BindAddr, cfg.DataDir, cfg.LogLevel})
	require.Zero(t, cfg.Ports.RPC)
	require.NotZero(t, cfg.Ports.HTTP, "what no flag says stays")
	_, cfg, err = execute(t, "--servers", "a:4647", "--data-dir", "/data")
	require.NoError(t, err)
	require.True(t, optional.Value(cfg.Client.Enabled), "who names servers wants a node")
}

func TestFlagsOfAServer(t *testing.T) {
	t.Parallel()
	_, cfg, err := execute(t, "--server", "--data-dir", "/data", "--bootstrap-expect", "1", "--join-token-file", "/token", "--insecure")
	require.NoError(t, err)
	require.True(t, optional.Value(cfg.Server.Enabled))
	require.Equal(t, 1, cfg.Expect())
	require.Equal(t, "/token", cfg.Server.JoinTokenFile)
	require.True(t, optional.Value(cfg.Insecure))
	for want, args := range map[string][]string{
		"neither server nor client is enabled": {"--data-dir", "/data"}, "data_dir": {"--server"}, "unknown flag": {"--nope"},
		"insecure": {"--dev", "--bind", "0.0.0.0"}, "invalid argument": {"--http-port", "many"}, "unknown command": {"now"},
	} {
		_, _, err := execute(t, args...)
		require.ErrorContains(t, err, want)
	}
}

func TestLaterFilesAndFlagsWin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.hcl": "datacenter = \"a\"\nregion = \"a\"\n", "b.json": `{"region": "b"}`,
		"c.txt": "no file of ours",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	_, cfg, err := execute(t, "--dev", "--config", dir)
	require.NoError(t, err)
	require.Equal(t, "a b", cfg.Datacenter+" "+cfg.Region)
	_, cfg, err = execute(t, "--dev", "--config", filepath.Join(dir, "b.json"), "--config", filepath.Join(dir, "a.hcl"), "--region", "flag")
	require.NoError(t, err)
	require.Equal(t, "a flag", cfg.Datacenter+" "+cfg.Region)
	loaded, err := LoadConfig([]string{dir})
	require.Error(t, err, "no plane is enabled")
	require.Equal(t, "b", loaded.Region, "it is told what there is nevertheless")
}

func TestWhereAnAgentIs(t *testing.T) {
	t.Parallel()
	plain := &config.Agent{APIToken: "secret"}
	require.Equal(t, api.Target{Address: "http://h:1", Token: "secret"}, targetOf(plain, "h:1"))
	secure := &config.Agent{TLS: &config.TLS{HTTP: new(true), CAFile: "ca.pem"}}
	require.Equal(t, api.Target{Address: "https://h:1", CACert: "ca.pem"}, targetOf(secure, "h:1"))
	secure.TLS.HTTP = new(false)
	require.Equal(t, api.Target{Address: "http://h:1"}, targetOf(secure, "h:1"), "only agents speak TLS among each other")
}
