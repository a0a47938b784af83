package config

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/config/plugin"
)

// written is a configuration that was written as JSON under its keys, and read again.
func written(t *testing.T, a *Agent) *Agent {
	t.Helper()
	text, err := json.MarshalIndent(a.Keys(), "", "  ")
	require.NoError(t, err)
	again, err := Parse(text, "again.json")
	require.NoError(t, err, "%s", text)
	return again
}

// TestWhatIsPrintedIsAFileAgain for the examples, and for what -dev is.
func TestWhatIsPrintedIsAFileAgain(t *testing.T) {
	t.Parallel()
	all := map[string]*Agent{"dev": Merge(Default(), DevMode())}
	for _, name := range []string{"agent.hcl", "fleet.hcl"} {
		text, err := os.ReadFile("../../examples/" + name)
		require.NoError(t, err)
		a, err := Parse(text, name)
		require.NoError(t, err)
		all[name] = a
	}
	for name, a := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NotEmpty(t, a.Keys())
			require.Equal(t, a.Keys(), written(t, a).Keys())
		})
	}
}

func TestKeysAreThoseOfAFile(t *testing.T) {
	t.Parallel()
	a := &Agent{Name: "n", LogJSON: new(false), Ports: &Ports{HTTP: 1}, Plugins: []*plugin.Block{
		{Name: "raw_exec", Config: &plugin.Config{Enabled: new(true)}}, {Name: "docker"},
	}}
	text, err := json.Marshal(a.Keys())
	require.NoError(t, err)
	require.JSONEq(t, `{"name": "n", "log_json": false, "ports": {"http": 1},
		"plugin": [{"raw_exec": {"config": {"enabled": true}}}, {"docker": {}}]}`, string(text), "false was said; 0 was not")
}
