package e2e

import (
	"path/filepath"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/execution"
)

// TestAdmissionRules: an operator writes rules with the command line and tries a job file on them; teams are refused by name, through
// Nomad's client and where they write environments, also for what is interpolated. Rules survive kill -9.
func TestAdmissionRules(t *testing.T) {
	t.Parallel()
	args := append([]string{"-server", "-client"}, config(t, filepath.Join(t.TempDir(), "data"), loginAccess)...)
	a := start(t, args...)
	root, _, err := a.nomad().ACLTokens().Bootstrap(nil)
	require.NoError(t, err)
	a.token = root.SecretID
	teams := tenants(t, a, "red", "blue")
	rules := `
rule "no-raw" {
  namespaces = ["re*"]
  when       = "Driver == ` + "`raw_exec` and (User != `nobody` or `red` in TokenPolicies)" + `"
  message    = "take a sandbox"
}
rule "small" {
  level = "warn"
  max   = { MemoryMB = 64 }
}
rule "plain" {
  when    = "WarmPool == true and Image == ` + "`host` and `red` in TokenPolicies" + `"
  message = "red takes images"
}
`
	require.Contains(t, a.drover(rules, "admission", "put", "-"), `Admission rule "small" was put.`)
	require.Contains(t, a.drover("", "admission", "list"), "no-raw")

	job := func(namespace, user string) *api.Job {
		task := api.NewTask("t", "raw_exec").SetConfig("command", "/bin/true")
		task.User = user
		j := api.NewBatchJob("j", "j", "global", 50).AddTaskGroup(api.NewTaskGroup("g", 1).AddTask(task))
		j.Namespace = &namespace
		return j.Constrain(api.NewConstraint("${attr.kernel.name}", "=", "none")) // nothing of it runs
	}
	as := func(x tenant) *api.Client {
		c := a.nomad()
		c.SetSecretID(x.token)
		return c
	}
	for _, user := range []string{"nobody", "${meta.user}"} {
		_, _, err = as(teams[0]).Jobs().Register(job("red", user), nil)
		require.ErrorContains(t, err, `admission rule "no-raw": take a sandbox (`)
		require.ErrorContains(t, err, "400")
	}
	res, _, err := as(teams[1]).Jobs().Register(job("blue", "nobody"), nil)
	require.NoError(t, err)
	require.Contains(t, res.Warnings, `admission rule "small" (MemoryMB is 300, the most is 64)`)
	_, _, err = a.nomad().Jobs().Register(job("red", "nobody"), nil)
	require.NoError(t, err, "the rule is about a token, too")

	_, _, err = teams[0].at(a).PutEnvironment(t.Context(), execution.Environment{ID: "e", Image: "host", PoolSize: 1})
	require.ErrorContains(t, err, `admission rule "plain": red takes images`)
	_, _, err = teams[1].at(a).PutEnvironment(t.Context(), execution.Environment{ID: "e", Image: "host"})
	require.NoError(t, err)

	a.PullThePlug()
	a = start(t, args...)
	a.token = root.SecretID
	require.Contains(t, a.drover("", "admission", "get", "no-raw"), `"Message": "take a sandbox"`)
	_, _, err = as(teams[0]).Jobs().Register(job("red", "nobody"), nil)
	require.ErrorContains(t, err, `admission rule "no-raw"`)
	a.drover("", "admission", "delete", "no-raw")
	_, _, err = as(teams[0]).Jobs().Register(job("red", "nobody"), nil)
	require.NoError(t, err)
}
