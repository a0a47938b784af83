package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"drover"
)

func TestFilesMergeInOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("a.hcl", `
data_dir = "/x"
ports { http = 5000 }
server { enabled = true }
client {
  enabled = true
  meta { rack = "r1" }
  reserved { cpu = 100 }
  host_volume "data" { path = "/data" }
}
plugin "raw_exec" {
  config {
    enabled = true
  }
}
exec {
  environment "1" {
    image = "host"
  }
}`)
	write("b.json", `{"ports": {"rpc": 6000}, "client": {"meta": {"zone": "z"}}, "plugin": [{"raw_exec": {"config": {"enabled": false}}}]}`)
	file, err := Load(dir)
	require.NoError(t, err)
	a := Merge(Default(), file)
	require.NoError(t, a.Validate())
	require.Equal(t, 5000, a.Ports.HTTP)
	require.Equal(t, 6000, a.Ports.RPC)
	require.Equal(t, map[string]string{"rack": "r1", "zone": "z"}, a.Client.Meta)
	require.False(t, True(a.Driver("raw_exec").Enabled))
	require.Equal(t, "host", a.Exec.Environments[0].Image)
}

func TestUnknownKeysAreNamed(t *testing.T) {
	t.Parallel()
	_, err := Parse([]byte("data_dir = \"/x\"\nclient {\n  colour = 1\n}\n"), "x.hcl")
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	require.ErrorContains(t, err, "x.hcl:3")
	require.ErrorContains(t, err, "colour")
	_, err = Parse([]byte(`{"ports": {"http": "many"}}`), "x.json")
	require.ErrorContains(t, err, "x.json")
}

func TestValidateReportsAllAtOnce(t *testing.T) {
	t.Parallel()
	a := Merge(Default(), &Agent{LogLevel: "loud", BindAddr: "here", Server: &Server{HeartbeatGrace: "soon"}})
	err := a.Validate()
	for _, want := range []string{"server.enabled", "data_dir", "log_level", "bind_addr", "heartbeat_grace"} {
		require.ErrorContains(t, err, want)
	}
}

func TestEnvironmentNamesWrongVariables(t *testing.T) {
	t.Parallel()
	_, err := Environment(func(name string) (string, bool) { return "x", name == "DROVER_HTTP_PORT" })
	require.ErrorContains(t, err, "DROVER_HTTP_PORT")
}
