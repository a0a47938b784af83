package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestConnectionLimits(t *testing.T) {
	t.Parallel()
	a, err := Parse([]byte(`limits {
  https_handshake_timeout = "5s"
  rpc_handshake_timeout = "3s"
  rpc_max_conns_per_client = 100
}`), "a.hcl")
	require.NoError(t, err)
	require.Empty(t, a.Ignored)
	faces, links := a.Limits.Handshakes()
	require.Equal(t, []time.Duration{5 * time.Second, 3 * time.Second}, []time.Duration{faces, links})
	require.Equal(t, 100, a.Limits.LinksOf())
	faces, links = (*Limits)(nil).Handshakes()
	require.Equal(t, []time.Duration{handshakeTimeout, handshakeTimeout}, []time.Duration{faces, links})
	require.Zero(t, (*Limits)(nil).LinksOf())

	wrong := Merge(Merge(Default(), DevMode()), &Agent{Limits: &Limits{
		HTTPSHandshake: "0s", RPCHandshake: "2h", RPCMaxConns: new(-1), HTTPMaxConns: new(-1),
	}})
	for _, key := range []string{
		"https_handshake_timeout: must", "rpc_handshake_timeout: must", "rpc_max_conns_per_client", "http_max_conns_per_client",
	} {
		require.ErrorContains(t, wrong.Validate(), "limits."+key)
	}
	_, err = Parse([]byte(`limits { rpc_max_burst = 10 }`), "a.hcl")
	require.ErrorContains(t, err, "rpc_max_burst")
}
