package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/exec/environment"
)

func TestAnotherClusterAsTheConfigurationHasIt(t *testing.T) {
	t.Parallel()
	c := clusterConfig(&config.NomadCluster{Address: "http://n", Token: "t", Driver: "docker"}, environment.Options{NetworkMode: "host"})
	require.Equal(t, []string{"http://n", "t", "docker", "host"}, []string{c.Address, c.Token, c.Driver, c.Environments.NetworkMode})
}

func TestAdvertisedPorts(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a:1", withPort("a:1", nil))
	require.Equal(t, "a", withPort("a", nil), "there is no listener whose port it could be")
}
