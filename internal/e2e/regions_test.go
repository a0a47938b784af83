package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// TestRegions: servers of two regions know each other, send requests to where they belong, and share namespaces and node pools,
// of which one region is the authority.
func TestRegions(t *testing.T) {
	t.Parallel()
	dir, port := t.TempDir(), freePort(t)
	const key = "MDEyMzQ1Njc4OWFiY2RlZg=="
	of := func(region string) string {
		return fmt.Sprintf("region = %q\nserver {\n  encrypt = %q\n  authoritative_region = \"global\"\n}\n", region, key)
	}
	global := start(t, append([]string{"-server", "-node", "g0", "-serf-port", port}, config(t, filepath.Join(dir, "g"), of("global"))...)...)
	west := start(t, append([]string{
		"-server", "-bootstrap-expect", "1", "-node", "w0", "-serf-port", freePort(t), "-retry-join", "127.0.0.1:" + port,
		"-retry-interval", "1s",
	}, config(t, filepath.Join(dir, "w"), of("west"))...)...)
	for _, a := range []*agent{global, west} {
		eventually(t, "both regions", func() (bool, string) {
			list, err := a.nomad().Regions().List()
			return slices.Equal(list, []string{"global", "west"}), fmt.Sprint(list, err)
		})
	}
	c := west.nomad()
	eventually(t, "a leader", func() (bool, string) {
		_, _, err := c.Jobs().Register(serversJob("far"), &api.WriteOptions{Region: "global"})
		return err == nil, fmt.Sprint(err)
	})
	_, _, err := global.nomad().Jobs().Info("far", nil)
	require.NoError(t, err)
	_, _, err = c.Jobs().Info("far", nil)
	require.ErrorContains(t, err, "not found", "it is the other region's")
	_, _, err = c.Jobs().Info("far", &api.QueryOptions{Region: "global"})
	require.NoError(t, err)
	_, _, err = c.Jobs().List(&api.QueryOptions{Region: "nowhere"})
	require.ErrorContains(t, err, "No path to region")

	_, err = c.Namespaces().Register(&api.Namespace{Name: "shared", Description: "one"}, nil)
	require.NoError(t, err)
	_, err = c.NodePools().Register(&api.NodePool{Name: "shared"}, nil)
	require.NoError(t, err)
	ns, _, err := global.nomad().Namespaces().Info("shared", nil)
	require.NoError(t, err)
	require.Equal(t, "one", ns.Description)
	eventually(t, "what was made", func() (bool, string) {
		ns, _, err := c.Namespaces().Info("shared", nil)
		if err != nil || ns.Description != "one" {
			return false, fmt.Sprint(err)
		}
		_, _, err = c.NodePools().Info("shared", nil)
		return err == nil, fmt.Sprint(err)
	})
	_, err = c.Namespaces().Delete("shared", nil)
	require.NoError(t, err)
	_, err = c.NodePools().Delete("shared", nil)
	require.NoError(t, err)
	_, _, err = global.nomad().Namespaces().Info("shared", nil)
	require.ErrorContains(t, err, "not found")
	eventually(t, "what was deleted", func() (bool, string) {
		_, _, one := c.Namespaces().Info("shared", nil)
		_, _, two := c.NodePools().Info("shared", nil)
		return one != nil && two != nil, fmt.Sprint(one, two)
	})
	global.PullThePlug()
	eventually(t, "writes that are refused without the authority", func() (bool, string) {
		_, err := c.Namespaces().Register(&api.Namespace{Name: "orphan"}, nil)
		require.Error(t, err)
		return true, ""
	})
	own := serversJob("own")
	own.Region = new("west")
	_, _, err = c.Jobs().Register(own, nil)
	require.NoError(t, err, "the region's own work goes on")
}
