package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// What a job has on its disk goes with it to another node, through the server, when its node is drained; links are links there.
func TestADiskMigratesToAnotherNode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, append([]string{"-server"}, config(t, filepath.Join(dir, "s"), "")...)...)
	m := rpcOn.FindStringSubmatch(s.Output())
	require.NotNil(t, m, s.Output())
	for _, name := range []string{"n0", "n1"} {
		file := config(t, filepath.Join(dir, name), clientBlock("servers = [\""+m[1]+"\"]"))
		start(t, append([]string{"-client", "-node", name}, file...)...)
	}
	c := s.nomad()
	eventually(t, "two nodes", func() (bool, string) {
		list, _, err := c.Nodes().List(nil)
		require.NoError(t, err)
		return len(list) == 2 && list[0].Status == "ready" && list[1].Status == "ready", fmt.Sprint(len(list))
	})
	job := rawJob("db", "service", "/bin/sh", "-c", `d=$NOMAD_ALLOC_DIR/data
		cat $d/deep/rows $NOMAD_TASK_DIR/own 2>/dev/null; readlink $d/out
		mkdir -p $d/deep; echo row >>$d/deep/rows; echo own >$NOMAD_TASK_DIR/own; ln -sf /etc/passwd $d/out
		echo begun; exec sleep 1000`)
	job.TaskGroups[0].EphemeralDisk = &api.EphemeralDisk{Migrate: new(true)}
	_, _, err := c.Jobs().Register(job, nil)
	require.NoError(t, err)
	begun := func(but string) (now *api.Allocation, said string) {
		eventually(t, "it runs", func() (bool, string) {
			list, _, err := c.Jobs().Allocations("db", false, nil)
			require.NoError(t, err)
			for _, a := range list {
				if a.NodeID != but && a.ClientStatus == "running" {
					now, _, err = c.Allocations().Info(a.ID, nil)
					require.NoError(t, err)
					said = logs(t, c, a.ID, "stdout")
					return strings.Contains(said, "begun"), said
				}
			}
			return false, fmt.Sprint(len(list))
		})
		return now, said
	}
	first, said := begun("")
	require.Equal(t, "begun\n", said)
	_, err = c.Nodes().UpdateDrainOpts(first.NodeID, &api.DrainOptions{DrainSpec: &api.DrainSpec{Deadline: -time.Second}}, nil)
	require.NoError(t, err)
	_, said = begun(first.NodeID)
	require.Equal(t, "row\nown\n/etc/passwd\nbegun\n", said)
	_, _, err = c.Jobs().Deregister("db", true, nil)
	require.NoError(t, err)
	nothingRuns(t, c)
}
