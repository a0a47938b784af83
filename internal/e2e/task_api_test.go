package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// asks begins scripts of tasks that ask the agent at their socket. The paths of tests are longer than addresses can be.
const asks = `cd "$NOMAD_SECRETS_DIR"; ask() { curl -sS --max-time 60 --unix-socket api.sock -w ' %{http_code}\n' "$@"; }
own() { ask -H "X-Nomad-Token: $NOMAD_TOKEN" "$@"; }
`

// askingJob is a job whose task runs the script, with its own token in its environment.
func askingJob(id, driver, user, script string) *api.Job {
	job := rawJob(id, "batch", "/bin/sh", "-c", asks+script)
	task := job.TaskGroups[0].Tasks[0]
	task.Driver, task.User = driver, user
	task.Resources.MemoryMB = new(100)
	if driver == "sandbox" {
		task.SetConfig("image", "host")
	}
	task.Identity = &api.WorkloadIdentity{Env: true}
	return job
}

// TestTasksAskTheAgent: with access control, on a node without a server, a task of each driver and of root and others asks for
// its own allocation, as a policy lets its job. It asks for its variable, too, which it may read anyhow. It gets nothing else,
// and nothing without a token.
func TestTasksAskTheAgent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, above := range []string{os.TempDir(), filepath.Dir(dir), dir} { // the first is of this run
		require.NoError(t, os.Chmod(above, 0o755)) // tasks of other users come there
	}
	const access = "acl {\n  enabled   = true\n  token_ttl = \"1s\"\n}\n"
	server := start(t, append([]string{"-server"}, config(t, filepath.Join(dir, "server"), access+"server {\n  enabled = true\n}\n")...)...)
	m := rpcOn.FindStringSubmatch(server.Output())
	require.NotNil(t, m)
	start(t, append([]string{"-client"}, config(t, filepath.Join(dir, "node"), access+clientBlock("servers = [\""+m[1]+"\"]"))...)...)
	root, _, err := server.nomad().ACLTokens().Bootstrap(nil)
	require.NoError(t, err)
	server.token = root.SecretID
	c := server.nomad()
	script := `
own "http://localhost/v1/allocation/$NOMAD_ALLOC_ID" | grep -o "\"ID\":\"$NOMAD_ALLOC_ID\"" | head -n 1
own "http://localhost/v1/var/nomad/jobs/$NOMAD_JOB_ID" | grep -o '"password":"[^"]*"'
own "http://localhost/v1/var/other"; ask http://localhost/v1/jobs; ask -H "X-Nomad-Token: $NOMAD_ALLOC_ID" http://localhost/v1/jobs
`
	for i, who := range [][2]string{
		{"raw_exec", "root"}, {"raw_exec", "nobody"}, {"sandbox", "root"}, {"sandbox", "nobody"}, {"sandbox", ""},
	} {
		id := fmt.Sprintf("asks-%d", i)
		_, err := c.ACLPolicies().Upsert(&api.ACLPolicy{
			Name: id, Rules: `namespace "default" { capabilities = ["read-job"] }`, JobACL: &api.JobACL{Namespace: "default", JobID: id},
		}, nil)
		require.NoError(t, err)
		variable(t, c, "nomad/jobs/"+id, map[string]string{"password": "of " + id})
		_, _, err = c.Jobs().Register(askingJob(id, who[0], who[1], script), nil)
		require.NoError(t, err)
		alloc := allocation(t, c, id, "complete")
		out := logs(t, c, alloc.ID, "stdout")
		want := []string{
			`"ID":"` + alloc.ID + `"`, `"password":"of ` + id + `"`, "Permission denied 403", "Forbidden 403", "Forbidden 403",
		}
		require.Equal(t, want, strings.Split(strings.TrimSpace(out), "\n"), "%v: %s", who, logs(t, c, alloc.ID, "stderr"))
	}
	over(t, c)
}

// TestTheTaskAPIWithoutAccessControl: a token is needed all the same, and one of a task is enough. The socket is there again after the
// agent was killed, and gone with its task.
func TestTheTaskAPIWithoutAccessControl(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := append([]string{"-server", "-client"}, config(t, filepath.Join(dir, "data"), "")...)
	a := start(t, args...)
	c := a.nomad()
	again := filepath.Join(dir, "again")
	_, _, err := c.Jobs().Register(askingJob("asks", "raw_exec", "", `
ask http://localhost/v1/status/leader; ask -H "X-Nomad-Token: x" http://localhost/v1/jobs
ask -H "Authorization: Bearer $NOMAD_TOKEN.x" http://localhost/v1/jobs; own http://any.name/v1/status/leader
echo "$NOMAD_UNIX_ADDR"
until test -e `+again+`; do sleep 0.1; done
until answer=$(own http://localhost/v1/status/leader); do sleep 0.1; done # until the agent has found the task again
echo "$answer"
`), nil)
	require.NoError(t, err)
	alloc := allocation(t, c, "asks", "running")
	lines := func() []string { return strings.Split(strings.TrimSpace(logs(t, a.nomad(), alloc.ID, "stdout")), "\n") }
	eventually(t, "answers", func() (bool, string) { return len(lines()) == 5, strings.Join(lines(), "\n") })
	first := lines()
	require.Equal(t, []string{"Forbidden 403", "Forbidden 403", "Forbidden 403"}, first[:3])
	require.Contains(t, first[3], " 200")
	socket, ok := strings.CutPrefix(first[4], "unix://")
	require.True(t, ok)
	info, err := os.Lstat(socket)
	require.NoError(t, err)
	require.Equal(t, os.ModeSocket, info.Mode().Type())
	a.PullThePlug()
	a = start(t, args...)
	require.NoError(t, os.WriteFile(again, nil, 0o600))
	allocation(t, a.nomad(), "asks", "complete")
	require.Len(t, lines(), 6)
	require.Contains(t, lines()[5], " 200")
	require.NoFileExists(t, socket)
	over(t, a.nomad())
}
