package host

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/config/plugin"
)

func TestDockerConfig(t *testing.T) {
	t.Parallel()
	c := dockerConfig(plugin.Config{})
	require.False(t, c.AllowVolumes)
	require.Zero(t, c.ImageDelay, "the driver's default")
	c = dockerConfig(plugin.Config{
		Endpoint: "tcp://d:2376", AllowPrivileged: new(true), PullActivityTimeout: "2m",
		GC:      &plugin.GC{Image: new(false), ImageDelay: "1h"},
		Volumes: &plugin.Volumes{Enabled: new(true), SELinuxLabel: "z"},
		Auth:    &plugin.Auth{Config: "/auth.json", Helper: "ecr"},
		TLS:     &plugin.TLS{Cert: "c", Key: "k", CA: "a"},
	})
	require.Equal(t, "tcp://d:2376", c.Endpoint)
	require.True(t, c.AllowPrivileged)
	require.True(t, c.AllowVolumes, "Nomad's block allows what allow_host_mounts does")
	require.Equal(t, 2*time.Minute, c.PullQuiet)
	require.EqualValues(t, forever, c.ImageDelay, "images stay, whatever the delay")
	require.Equal(t, []string{"/auth.json", "ecr", "c", "k", "a", "z"}, []string{c.AuthConfig, c.AuthHelper, c.Cert, c.Key, c.CA, c.SELinux})
}
