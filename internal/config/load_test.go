package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// environment is a process's with these variables only.
func environment(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
}

func TestVariables(t *testing.T) {
	t.Parallel()
	a, err := Environment(environment(map[string]string{
		"DROVER_NAME": "n", "DROVER_REGION": "r", "DROVER_DATACENTER": "d", "DROVER_DATA_DIR": "/d", "DROVER_BIND_ADDR": "::1",
		"DROVER_LOG_LEVEL": "DEBUG", "DROVER_API_TOKEN": "t", "DROVER_HTTP_PORT": "99", "DROVER_JOIN_TOKEN": "j", "OTHER": "x",
	}))
	require.NoError(t, err)
	require.Equal(t, &Agent{
		Name: "n", Region: "r", Datacenter: "d", DataDir: "/d", BindAddr: "::1", LogLevel: "DEBUG", APIToken: "t",
		Ports: &Ports{HTTP: 99}, Server: &Server{JoinToken: "j"}, Client: &Client{JoinToken: "j"},
	}, a)
	none, err := Environment(environment(nil))
	require.NoError(t, err)
	require.Equal(t, &Agent{}, none, "what is not set says nothing")
	require.Equal(t, "debug", Merge(Default(), a).LogLevel)
}

func TestFilesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"broken.hcl":  "client {",
		"twice.hcl":   "name = \"a\"\nname = \"b\"\n",
		"kind.json":   `{"name": ["a"]}`,
		"unknown.hcl": "nam = \"a\"\n",
		"meta.hcl":    "client {\n  meta {\n    a = [1]\n  }\n}\n",
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := Load(path)
		require.Equal(t, drover.Invalid, drover.CodeOf(err), name)
		require.ErrorContains(t, err, name, "the file is named")
	}
	_, err := Load(filepath.Join(dir, "absent.hcl"))
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	_, err = Load(dir)
	require.Error(t, err, "a folder is as good as its files")

	empty, err := Load(t.TempDir())
	require.NoError(t, err)
	require.Equal(t, &Agent{}, empty)
}

func TestMistypedKeysAreGuessed(t *testing.T) {
	t.Parallel()
	_, err := Parse([]byte("data_dri = 1\nserver {\n  enabld = true\n  encryt = 1\n}\nclinet {}\ncolour = 1\n"), "a.hcl")
	for _, want := range []string{
		`"data_dri" is not expected here. Did you mean "data_dir"?`, `"enabld" is not expected here. Did you mean "enabled"?`,
		`"encryt" is not expected here. Did you mean "encrypt"?`, `"clinet" are not expected here. Did you mean "client"?`,
	} {
		require.ErrorContains(t, err, want)
	}
	require.NotContains(t, err.Error(), `"colour" is not expected here. Did`)
}

// JSON is known by its brace where the name does not say so, and means the same.
func TestBothSyntaxesMeanTheSame(t *testing.T) {
	t.Parallel()
	hcl, err := Parse([]byte("name = \"n\"\nclient {\n  enabled = true\n  meta {\n    rack = 7\n  }\n}\n"), "a.hcl")
	require.NoError(t, err)
	json, err := Parse([]byte(" {\"name\":\"n\",\"client\":{\"enabled\":true,\"meta\":{\"rack\":\"7\"}}}"), "a")
	require.NoError(t, err)
	require.Equal(t, asText(t, hcl), asText(t, json))
	require.Equal(t, map[string]string{"rack": "7"}, hcl.Client.Meta)
}
