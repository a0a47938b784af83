package fleetplane

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/config/machines"
)

func TestTheAuthorityOfMachines(t *testing.T) {
	t.Parallel()
	absent := filepath.Join(t.TempDir(), "absent")
	text, err := machineAuthority(nil)
	require.NoError(t, err)
	require.Empty(t, text)
	_, err = machineAuthority(&config.TLS{RPC: new(true), CAFile: absent})
	require.ErrorContains(t, err, "tls.ca_file: ")
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, []byte("PEM"), 0o600))
	text, err = machineAuthority(&config.TLS{RPC: new(true), CAFile: ca})
	require.NoError(t, err)
	require.Equal(t, "PEM", text)
}

// A check finds its pool and its provider in the configuration, and says where they should have been.
func TestPoolOfACheck(t *testing.T) {
	t.Parallel()
	provider := &machines.Provider{Name: "local", Type: "loopback"}
	over := &fleet.Policy{Name: "api", Provider: "local", NodePool: "bought", Types: []fleet.InstanceType{{Name: "t", Price: 1}}}
	for name, c := range map[string]struct {
		cfg  *machines.Fleet
		ask  fleet.Check
		says string // "" = found
	}{
		"no fleet":               {nil, fleet.Check{Pool: "std"}, `has no pool "std"`},
		"of the API":             {&machines.Fleet{Providers: []*machines.Provider{provider}}, fleet.Check{Pool: "api", Policy: over}, ""},
		"of an unknown provider": {nil, fleet.Check{Pool: "api", Policy: over}, `there is no provider "local"`},
	} {
		policy, cloud, err := checked(&config.Agent{Fleet: c.cfg, Datacenter: "dc7"}, c.ask)
		if c.says != "" {
			require.ErrorContains(t, err, c.says, name)
			continue
		}
		require.NoError(t, err, name)
		require.Same(t, provider, cloud, name)
		require.Equal(t, "dc7", policy.Datacenter, "the server's, unless the pool has one")
	}
}

func TestWhereMachinesReachTheServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg  config.Agent
		want string
	}{
		"the fleet's own key":   {config.Agent{Fleet: &machines.Fleet{Server: "a.example:4647"}}, "a.example"},
		"without a port":        {config.Agent{Fleet: &machines.Fleet{Server: "a.example"}}, "a.example"},
		"what is advertised":    {config.Agent{Fleet: &machines.Fleet{}, Advertise: &config.Addresses{RPC: "b:1"}}, "b"},
		"nothing is configured": {config.Agent{Fleet: &machines.Fleet{}}, ""},
	} {
		require.Equal(t, c.want, fleetHost(&c.cfg), name)
	}
}

func TestProvidersOfTheConfiguration(t *testing.T) {
	t.Parallel()
	p, err := openProvider(&machines.Provider{Name: "local", Type: "loopback"}, "owner", nil, t.TempDir(), clock.Wall{})
	require.NoError(t, err)
	there, _, err := p.List(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, there)
	require.Equal(t, map[string]string{"kernel.name": "linux"}, localAttributes(&machines.Provider{Type: "ec2"}), "of any architecture")
	require.Contains(t, localAttributes(&machines.Provider{Type: "docker"}), "cpu.arch")
}
