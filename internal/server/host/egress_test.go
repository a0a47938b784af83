package host

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/node/egress"
)

func TestEgressPolicy(t *testing.T) {
	t.Parallel()
	require.Equal(t, egress.Default(), egressPolicy(nil))
	require.Equal(t, egress.Default(), egressPolicy(&config.Egress{}))
	p := egressPolicy(&config.Egress{Allow: []string{"10.1.0.0/16"}, AllowJobs: []string{}, Connections: new(0)})
	require.Equal(t, []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}, p.Allow)
	require.Empty(t, p.AllowJobs)
	require.Zero(t, p.Connections)
	require.Equal(t, egress.DefaultPacketRate, p.PacketRate)
}
