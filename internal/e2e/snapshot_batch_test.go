package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDoneWorkIsNotRepeatedAfterARestore: batch work ran when the archive was saved, and ended since. Its node tells that again
// after the restore, also if its agent was killed meanwhile, and if the job was purged. Nothing runs a second time, and work that
// failed for good has failed.
func TestDoneWorkIsNotRepeatedAfterARestore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := append([]string{"-server", "-client"}, config(t, filepath.Join(dir, "data"), "")...)
	a := start(t, args...)
	ran := func(job string) string { return filepath.Join(dir, job+".ran") }
	release := filepath.Join(dir, "release")
	ends := map[string]string{"done": "complete", "purged": "complete", "failed": "failed"}
	for id, status := range ends {
		script := "echo x >> " + ran(id) + "; while [ ! -e " + release + " ]; do sleep 0.1; done"
		if status == "failed" {
			script += "; exit 1"
		}
		_, _, err := a.nomad().Jobs().Register(rawJob(id, "batch", "/bin/sh", "-c", script), nil)
		require.NoError(t, err)
	}
	for id := range ends {
		allocation(t, a.nomad(), id, "running")
		eventually(t, "the work of "+id, func() (bool, string) { return len(lines(t, ran(id))) == 1, "" })
	}
	file := filepath.Join(dir, "backup.snap")
	a.must("operator", "snapshot", "save", file)
	require.NoError(t, os.WriteFile(release, nil, 0o600))
	for id, status := range ends {
		allocation(t, a.nomad(), id, status)
	}
	_, _, err := a.nomad().Jobs().Deregister("purged", true, nil)
	require.NoError(t, err)
	restored := func() {
		t.Helper()
		a.must("operator", "snapshot", "restore", file)
		for id, status := range ends {
			allocation(t, a.nomad(), id, status)
			eventually(t, "the end of "+id, func() (bool, string) {
				j, _, err := a.nomad().Jobs().Info(id, nil)
				return err == nil && *j.Status == "dead", fmt.Sprint(err)
			})
			require.Len(t, lines(t, ran(id)), 1, "%s ran once", id)
			list, _, err := a.nomad().Jobs().Allocations(id, true, nil)
			require.NoError(t, err)
			require.Len(t, list, 1, id)
		}
	}
	restored()
	a.PullThePlug()
	a = start(t, args...)
	restored()
}
