package e2e

import (
	"path/filepath"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/execution"
)

// TestAdmissionRules: an operator writes rules with the command line and tries a job file on them. Teams are refused by name,
// through Nomad's client and where they write environments, also for what is interpolated. Rules survive kill -9.
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

	own := teams[0].at(a)
	_, err = own.AdmissionRules(t.Context())
	require.Equal(t, drover.Forbidden, drover.CodeOf(err), "it is for operators")
	adminClient(t, a, root.SecretID)

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

// adminClient puts, reads, tests and deletes a rule by our own client.
func adminClient(t *testing.T, a *agent, token string) {
	t.Helper()
	c, err := client.New("http://"+a.addr, client.WithToken(token))
	require.NoError(t, err)
	ctx := t.Context()
	r := drover.AdmissionRule{Name: "by-client", Level: drover.AdmissionDryRun, When: "Driver == `raw_exec`", Max: map[string]int64{"CPU": 1}}
	require.NoError(t, c.PutAdmissionRule(ctx, r))
	got, err := c.AdmissionRule(ctx, "by-client")
	require.NoError(t, err)
	require.Equal(t, r.Max, got.Max)
	all, err := c.AdmissionRules(ctx)
	require.NoError(t, err)
	require.Len(t, all, 4)
	job := &drover.Job{ID: "j", Type: drover.JobTypeBatch, TaskGroups: []*drover.TaskGroup{{Name: "g", Tasks: []*drover.Task{{
		Name: "t", Driver: "raw_exec", Config: map[string]any{"command": "/bin/true"},
	}}}}}
	verdicts, err := c.TestAdmission(ctx, job)
	require.NoError(t, err)
	require.Contains(t, verdicts, drover.AdmissionVerdict{
		Rule: "by-client", Level: drover.AdmissionDryRun, Group: "g", Task: "t", Reason: "CPU is 100, the most is 1; Driver is \"raw_exec\"",
	})
	require.Equal(t, drover.Invalid, drover.CodeOf(c.PutAdmissionRule(ctx, drover.AdmissionRule{Name: "x", When: "Drivr == `a`"})))
	require.NoError(t, c.DeleteAdmissionRule(ctx, "by-client"))
	_, err = c.AdmissionRule(ctx, "by-client")
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
}
