package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What servers should be set to alike is told by key, without secrets, and without what is each server's own.
func TestAlike(t *testing.T) {
	t.Parallel()
	a, b := valid(), valid()
	require.Equal(t, a.Alike(), b.Alike())
	a.APIToken, b.APIToken = "one", "two"
	a.Server.DataDir, b.Server.DataDir = "/a", "/b"
	a.Server.BootstrapExpect, b.Server.BootstrapExpect = new(3), new(0)
	a.Server.Encrypt, b.Server.Encrypt = "eA==", "eQ=="
	a.TLS, b.TLS = &TLS{RPC: new(true), CertFile: "a"}, &TLS{RPC: new(true), CertFile: "b"}
	require.Equal(t, a.Alike(), b.Alike())
	require.Equal(t, "set", a.Alike()["api_token"])
	require.Equal(t, "set", a.Alike()["server.encrypt"])
	b.Server.HeartbeatGrace = "20s"
	b.TLS.RPC = new(false)
	x, y := a.Alike(), b.Alike()
	require.Empty(t, x["server.heartbeat_grace"])
	require.Len(t, y["server.heartbeat_grace"], 12)
	require.NotEqual(t, x["tls.rpc"], y["tls.rpc"])
}
