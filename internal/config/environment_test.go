package config

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/optional"
)

func TestVariablesOfTrust(t *testing.T) {
	t.Parallel()
	over, err := Environment(func(name string) (string, bool) {
		v, ok := map[string]string{
			"DROVER_ALLOWED_HOSTS": "drover, poseidon", "DROVER_ALLOWED_ORIGINS": "https://a.example,https://b.example", "DROVER_INSECURE": "true",
			"DROVER_JOIN_TOKEN_FILE": "/run/token",
		}[name]
		return v, ok
	})
	require.NoError(t, err)
	require.Equal(t, []string{"drover", "poseidon"}, over.AllowedHosts)
	require.Equal(t, []string{"https://a.example", "https://b.example"}, over.AllowedOrigins)
	require.True(t, optional.Value(over.Insecure))
	require.Equal(t, "/run/token", over.Server.JoinTokenFile)
	require.Equal(t, "/run/token", over.Client.JoinTokenFile)
	_, err = Environment(func(name string) (string, bool) { return "maybe", name == "DROVER_INSECURE" })
	require.ErrorContains(t, err, "DROVER_INSECURE")
	both, err := Parse([]byte("server {\n  enabled = true\n  join_token = \"a\"\n}\ndata_dir = \"/x\""), "a.hcl")
	require.NoError(t, err)
	require.ErrorContains(t, Merge(Merge(Default(), both), over).Validate(), "server.join_token_file: and join_token are set")
}
