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
	const key = "MDEyMzQ1Njc4OWFiY2RlZg=="
	block := func(string) string {
		return fmt.Sprintf("server {\n  encrypt = %q\n  authoritative_region = \"global\"\n}\n", key)
	}
	tryRegions(startRegions(t, block, nil))
}

// TestRegionsOverTLS: so it is where everybody shows a certificate, which names the region.
func TestRegionsOverTLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	block := func(region string) string {
		return ca.mutual("server", region) + "server {\n  authoritative_region = \"global\"\n}\n"
	}
	global, west := startRegions(t, block, ca.person())
	tryRegions(global, west)
}

// startRegions starts one server in each of the regions global and west, with the block of each in its configuration.
func startRegions(t *testing.T, block func(region string) string, asks *api.TLSConfig) (global, west *agent) {
	t.Helper()
	dir, port := t.TempDir(), freePort(t)
	file := config(t, filepath.Join(dir, "g"), block("global"))
	global = start(t, append([]string{"-server", "-node", "g0", "-serf-port", port}, file...)...)
	west = start(t, append([]string{
		"-server", "-bootstrap-expect", "1", "-node", "w0", "-region", "west", "-serf-port", freePort(t), "-retry-join", "127.0.0.1:" + port,
		"-retry-interval", "1s",
	}, config(t, filepath.Join(dir, "w"), block("west"))...)...)
	global.tls, west.tls = asks, asks
	return global, west
}

func tryRegions(global, west *agent) {
	t := global.t
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

	ownRegions(global, west)

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

// ownRegions: a job that names a region runs there, wherever it is registered; one that names none, or the default, runs where it is.
func ownRegions(global, west *agent) {
	t, c := global.t, west.nomad()
	for _, one := range []struct{ id, named, asked, runs string }{
		{"east-job", "east", "", ""},
		{"west-job", "west", "", "west"},
		{"here-job", "global", "", "west"},
		{"none-job", "", "", "west"},
		{"sent-job", "west", "global", "global"}, // who asks says so
	} {
		job := serversJob(one.id)
		job.Region = &one.named
		_, _, err := c.Jobs().Register(job, &api.WriteOptions{Region: one.asked})
		if one.runs == "" {
			require.ErrorContains(t, err, "No path to region")
			_, _, err = c.Jobs().Plan(job, false, nil)
			require.ErrorContains(t, err, "No path to region")
			continue
		}
		require.NoError(t, err, one.id)
		kept, _, err := c.Jobs().Info(one.id, &api.QueryOptions{Region: one.runs})
		require.NoError(t, err, one.id)
		require.Equal(t, one.runs, *kept.Region, one.id)
	}
	far := serversJob("back-job")
	far.Region = new("west")
	plan, _, err := global.nomad().Jobs().Plan(far, false, nil)
	require.NoError(t, err)
	require.Zero(t, plan.JobModifyIndex)
	_, _, err = global.nomad().Jobs().Register(far, nil)
	require.NoError(t, err)
	_, _, err = c.Jobs().Info("back-job", nil)
	require.NoError(t, err)
	_, _, err = global.nomad().Jobs().Info("back-job", nil)
	require.ErrorContains(t, err, "not found")
}
