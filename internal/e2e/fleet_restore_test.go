package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider/ec2/ec2test"
)

// owners counts the machines that cost, by their owner's tag.
func (c *account) owners() map[string]int {
	by := map[string]int{}
	for _, i := range c.Instances() {
		if i.Ended.IsZero() {
			by[i.Tag(fleet.TagOwner)]++
		}
	}
	return by
}

// small has machines be as big as they are sold, so that there is room for one piece of work on each.
func (c *account) small() {
	c.t.Helper()
	file := filepath.Join(c.dir, "machine.hcl")
	text, err := os.ReadFile(file)
	require.NoError(c.t, err)
	small := strings.Replace(string(text), "client {", "client {\n  cpu_total_compute = 1000", 1)
	require.NotEqual(c.t, string(text), small)
	require.NoError(c.t, os.WriteFile(file, []byte(small), 0o600))
}

// work registers a job of which each allocation takes a machine, and waits until they run. The file that it returns ends them.
func (c *account) work(a *agent, id string, count int) (release string) {
	c.t.Helper()
	ran, release := filepath.Join(c.dir, id+".ran"), filepath.Join(c.dir, id+".release")
	_, _, err := a.nomad().Jobs().Register(fleetJob(id, count, "echo x >> "+ran+"; while [ ! -e "+release+" ]; do sleep 0.1; done"), nil)
	require.NoError(c.t, err)
	eventually(c.t, "the work of "+id, func() (bool, string) { return len(lines(c.t, ran)) == count, c.said() })
	return release
}

// TestTwoLivingClustersShareAnArchive: while a cluster works on its machines, its archive is restored into another one. That has
// three servers, the same pool, and a machine of its own in the same account. Neither touches the other's machines,
// nothing is left that nobody knows, and when the first cluster is gone the second one has what an operator gives it.
func TestTwoLivingClustersShareAnArchive(t *testing.T) {
	t.Parallel()
	c := newAccount(t, "", `boot_timeout = "6s"
    lost_timeout = "6s"
    orphan_grace = "6s"`)
	c.block = strings.Replace(c.block, "server {", "server {\n  failover_heartbeat_ttl = \"10s\"", 1)
	c.small()
	old := start(t, c.server()...)
	releaseOld := c.work(old, "old", 2)
	theirs := c.owners()
	require.Len(t, theirs, 1)
	file := filepath.Join(c.dir, "backup.snap")
	old.must("operator", "snapshot", "save", file)
	releaseLater := c.work(old, "later", 1) // its machine is in no archive

	r := startServers(t, 3, c.block)
	r.agreed(3, r.list...)
	releaseNew := c.work(r.list[0], "new", 1)
	require.Len(t, c.owners(), 2)
	r.list[1].must("operator", "snapshot", "restore", file)
	// The new cluster's job is none of the archive's: it ends, and its machine with it. The archive's job is placed anew, on
	// machines of its own, as its nodes are silent.
	require.NoError(t, os.WriteFile(releaseNew, nil, 0o600))
	first := ""
	for owner := range theirs {
		first = owner
	}
	eventually(t, "both clusters at work", func() (bool, string) {
		by := c.owners()
		return by[first] == 3 && len(by) == 2, fmt.Sprint(by)
	})
	var watched []fleet.Instance
	for _, a := range r.list {
		eventually(t, "machines that are left alone", func() (bool, string) {
			watched = nil
			for _, i := range a.machines() {
				if i.Of != "" {
					watched = append(watched, i)
				}
			}
			return len(watched) == 3, fmt.Sprintf("%+v", a.machines())
		})
		require.Equal(t, first, watched[0].Of)
		require.Contains(t, watched[0].Reason, first)
	}
	ran := filepath.Join(c.dir, "old.ran")
	eventually(t, "the archive's job on machines of the new cluster", func() (bool, string) {
		return len(lines(t, ran)) == 4, fmt.Sprint(c.owners())
	})
	for _, i := range c.Instances() {
		if i.Tag(fleet.TagOwner) == first {
			require.True(t, i.Ended.IsZero(), "the first cluster works on %s", i.ID)
		}
	}
	require.Len(t, old.machines(), 3, "the first cluster has its own and no other")

	old.PullThePlug() // and never comes back
	for _, file := range []string{releaseOld, releaseLater} {
		require.NoError(t, os.WriteFile(file, nil, 0o600))
	}
	eventually(t, "the end of the new cluster's own machines", func() (bool, string) {
		by := c.owners()
		return by[first] == 3 && len(by) == 1, fmt.Sprint(by)
	})
	r.list[0].must("fleet", "kill", watched[0].ID, "-reason", "that cluster is gone")
	eventually(t, "what an operator destroyed", func() (bool, string) { return c.owners()[first] == 2, fmt.Sprint(c.owners()) })

	// The rest by the configuration, server by server.
	r.more = strings.Replace(c.block, "fleet {", fmt.Sprintf("fleet {\n  owner = %q\n", first), 1)
	for i := range r.list {
		r.list[i].Stop()
		r.list[i] = r.start(i, 3)
		r.agreed(3, r.list...)
	}
	eventually(t, "the end of all that costs", func() (bool, string) { now, _ := c.paid(); return now == 0, fmt.Sprint(c.owners()) })
}

// TestAClusterIsRestoredInItsPlace: the servers are lost with their disks, and others at the same addresses get the archive. Machines
// whose agents call there go on with their work, also one that was bought after the archive was saved; a later archive's cluster
// knows them as its own.
func TestAClusterIsRestoredInItsPlace(t *testing.T) {
	t.Parallel()
	c := newAccount(t, "", "")
	c.small()
	args := c.server()
	a := start(t, args...)
	release := c.work(a, "kept", 1)
	file := filepath.Join(c.dir, "backup.snap")
	a.must("operator", "snapshot", "save", file)
	c.work(a, "later", 1)
	_, ever := c.paid()
	require.Equal(t, 2, ever)
	a.PullThePlug()
	require.NoError(t, os.RemoveAll(filepath.Join(c.dir, "data")))
	a = start(t, args...)
	a.must("operator", "snapshot", "restore", file)
	eventually(t, "the fleet's new term, which begins with the restored state", func() (bool, string) {
		status, text := a.fleet("GET", "instances", "", nil)
		return status == 200, text
	})
	eventually(t, "machines that are the new cluster's", func() (bool, string) {
		by, mine := c.owners(), 0
		for _, i := range a.machines() {
			if i.State == fleet.InstanceActive && i.Of == "" {
				mine++
			}
		}
		return len(by) == 1 && mine >= 1, fmt.Sprintf("%v %+v", by, a.machines())
	})
	require.Len(t, lines(t, filepath.Join(c.dir, "kept.ran")), 1, "the work went on")
	require.NoError(t, os.WriteFile(release, nil, 0o600))
	c.allEnd(a)
	_, ever = c.paid()
	require.Equal(t, 2, ever, "nothing was bought anew")
	c.With(func(c *ec2test.Cloud) { require.Positive(t, c.Calls["CreateTags"]) })
}
