package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// withJava is a node with raw_exec, and with java from the folder.
func withJava(dir string) string {
	return clientBlock(fmt.Sprintf(`chroot_env {
    %q = "/opt/java"
    "/usr" = "/usr"
    "/bin" = "/bin"
    "/lib" = "/lib"
    "/lib64" = "/lib64"
    "/etc" = "/etc"
  }`, dir)) + `
plugin "raw_exec" {
  config {
    enabled = true
  }
}
plugin "java" {
  config {
    allow_host_network = true
  }
}`
}

// TestTasksOfAKilledAgent: the agent is killed as soon as a task's program runs, whether it knows that or not, and once more before
// the program ends. Each task is started once, goes on, and its exit code is told by the third agent. It is not parallel, since it
// changes the PATH that its agents inherit: java is a script here.
func TestTasksOfAKilledAgent(t *testing.T) {
	begun, release := make(chan struct{}, 10), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		begun <- struct{}{}
		select {
		case <-release:
		case <-q.Context().Done():
		}
	}))
	t.Cleanup(s.Close)
	const marker = "7423.5"
	body := "echo started >> $NOMAD_TASK_DIR/once\nbusybox wget -qO- " + s.URL + "/ || exit 9\n" +
		"until [ -e $NOMAD_TASK_DIR/go ]; do sleep 0.05; done\nexit 7\n"
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	java, _, _ := strings.Cut(fakeJava, "echo \"$@\"")
	java += body
	require.NoError(t, os.WriteFile(filepath.Join(dir, "java"), []byte(java), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	data := filepath.Join(t.TempDir(), "data")
	args := append([]string{"-server", "-client"}, config(t, data, withJava(dir))...)
	a := start(t, args...)
	t.Cleanup(func() { cleanAfter(t, args) })
	jobs := map[string]*api.Job{
		"raw_exec": driverJob("raw_exec", "batch", "raw_exec", map[string]any{"command": "/bin/sh", "args": []string{"-c", body, marker}}),
		"java":     driverJob("java", "batch", "java", map[string]any{"class": "Hello", "args": []string{marker}}),
	}
	for _, j := range jobs {
		j.TaskGroups[0].RestartPolicy = &api.RestartPolicy{Attempts: new(0), Mode: new("fail")}
		j.TaskGroups[0].ReschedulePolicy = &api.ReschedulePolicy{Attempts: new(0), Unlimited: new(false)}
		register(t, a.nomad(), j)
	}
	for range jobs {
		<-begun
	}
	a.PullThePlug()
	require.Len(t, processes(marker), len(jobs), "tasks outlive the agent")
	close(release)
	a = start(t, args...)
	c := a.nomad()
	before := map[string]string{}
	for name := range jobs {
		before[name] = allocation(t, c, name, "running").ID
	}
	a.PullThePlug()
	for _, id := range before {
		found, err := filepath.Glob(filepath.Join(data, "*", id, "main", "local"))
		require.NoError(t, err)
		require.Len(t, found, 1)
		require.NoError(t, os.WriteFile(filepath.Join(found[0], "go"), nil, 0o644))
	}
	eventually(t, "the tasks' end while there is no agent", func() (bool, string) { return len(processes(marker)) == 0, "they run" })
	a = start(t, args...)
	c = a.nomad()
	for name, id := range before {
		ended := allocation(t, c, name, "failed")
		require.Equal(t, id, ended.ID)
		require.Contains(t, messages(ended), "Exit Code: 7", name)
		once, err := filepath.Glob(filepath.Join(data, "*", id, "main", "local", "once"))
		require.NoError(t, err)
		require.Len(t, once, 1)
		text, err := os.ReadFile(once[0])
		require.NoError(t, err)
		require.Equal(t, "started\n", string(text), name)
	}
	require.Empty(t, begun, "nothing was started again")
}
