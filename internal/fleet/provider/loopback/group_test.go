package loopback_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/fleet/provider/loopback"
)

// trees makes the group in all trees that there are; none without root.
func trees(name string) (made []string) {
	roots := []string{"/sys/fs/cgroup"} // v2 alone
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.procs"); err != nil {
		roots, _ = filepath.Glob("/sys/fs/cgroup/*")
	}
	for _, root := range roots {
		group := filepath.Join(root, name)
		if os.MkdirAll(filepath.Join(group, "supervisors"), 0o755) == nil {
			made = append(made, group)
		}
	}
	return made
}

// The control groups of a machine go with it, whether it is destroyed or ends by itself, and so does what hides in them.
func TestControlGroupsGoWithTheMachine(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, p *loopback.Provider, dir, id string){
		"destroyed": func(t *testing.T, p *loopback.Provider, _, id string) {
			t.Helper()
			require.NoError(t, p.Destroy(t.Context(), id))
		},
		"ended": func(t *testing.T, p *loopback.Provider, dir, id string) {
			t.Helper()
			text, err := os.ReadFile(filepath.Join(dir, id, "machine.json"))
			require.NoError(t, err)
			var r struct{ PID int }
			require.NoError(t, json.Unmarshal(text, &r))
			require.NoError(t, syscall.Kill(r.PID, syscall.SIGKILL))
			require.Eventually(t, func() bool { return one(t, p).State == provider.Terminated }, time.Minute, time.Millisecond)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p := cloud(t, loopback.Config{Dir: dir, StopTimeout: -1})
			made, err := p.Create(t.Context(), request(dir, offering("small")))
			require.NoError(t, err)
			id := made[0].ID
			groups := trees("drover-" + id)
			hidden := exec.Command("/bin/sleep", "1000")
			require.NoError(t, hidden.Start())
			for _, group := range groups {
				for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
					if all, err := os.ReadFile(filepath.Join(filepath.Dir(group), file)); err == nil { // v1: none may be empty
						require.NoError(t, os.WriteFile(filepath.Join(group, file), all, 0o600))
						require.NoError(t, os.WriteFile(filepath.Join(group, "supervisors", file), all, 0o600))
					}
				}
				pid := []byte(strconv.Itoa(hidden.Process.Pid))
				require.NoError(t, os.WriteFile(filepath.Join(group, "supervisors", "cgroup.procs"), pid, 0o600))
			}
			end(t, p, dir, id)
			for _, group := range groups {
				require.NoDirExists(t, group)
			}
			if len(groups) == 0 {
				t.Log("no control groups can be made here")
				require.NoError(t, hidden.Process.Kill())
			}
			require.Error(t, hidden.Wait(), "it was killed")
		})
	}
}
