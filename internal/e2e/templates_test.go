package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// variable writes nomad/jobs/NAME with the official client.
func variable(t *testing.T, c *api.Client, path string, items map[string]string) {
	t.Helper()
	_, _, err := c.Variables().Update(&api.Variable{Path: path, Items: items}, nil)
	require.NoError(t, err)
}

// task waits until the job's only task is as told, and returns its state.
func task(t *testing.T, c *api.Client, job, what string, is func(*api.TaskState) bool) (state *api.TaskState) {
	t.Helper()
	eventually(t, what, func() (bool, string) {
		allocs, _, err := c.Jobs().Allocations(job, false, nil)
		require.NoError(t, err)
		if len(allocs) == 0 {
			return false, "no allocation"
		}
		state = allocs[0].TaskStates["main"]
		return state != nil && is(state), fmt.Sprint(told(state))
	})
	return state
}

func told(s *api.TaskState) (out []string) {
	if s != nil {
		for _, e := range s.Events {
			out = append(out, e.DisplayMessage)
		}
	}
	return out
}

func countOf(s *api.TaskState, text string) (n int) {
	for _, m := range told(s) {
		if strings.Contains(m, text) {
			n++
		}
	}
	return n
}

// seen waits until the file has these lines.
func seen(t *testing.T, path string, want ...string) {
	t.Helper()
	eventually(t, "what the task wrote", func() (bool, string) {
		data, _ := os.ReadFile(path) // until it is there
		return string(data) == strings.Join(want, "\n")+"\n", string(data)
	})
}

// A job reads its database's password from a variable. It waits for it; when it is rotated the task is restarted, exactly once, and one
// that asked for a signal gets it. With access control on, and through an agent without server, it can read its own variables only.
func TestAPasswordIsRotated(t *testing.T) {
	t.Parallel()
	const access = "acl {\n  enabled   = true\n  token_ttl = \"1s\"\n}\n"
	r, node := startServersAndNode(t, access)
	var root *api.ACLToken
	eventually(t, "a bootstrap", func() (bool, string) {
		var err error
		if root, _, err = r.list[0].nomad().ACLTokens().Bootstrap(nil); err != nil {
			return false, err.Error()
		}
		return true, ""
	})
	node.token = root.SecretID
	c := node.nomad()
	out := filepath.Join(t.TempDir(), "seen")

	job := rawJob("db", "service", "/bin/sh", "-c",
		`trap 'echo signalled $(cat $NOMAD_SECRETS_DIR/conf) >> `+out+`' HUP; echo started $PASSWORD $(cat $NOMAD_SECRETS_DIR/conf) >> `+out+
			`; while :; do sleep 0.05; done`)
	main := job.TaskGroups[0].Tasks[0]
	main.Templates = []*api.Template{
		{
			EmbeddedTmpl: new(`PASSWORD={{ with nomadVar "nomad/jobs/db" }}{{ .password }}{{ end }}`), DestPath: new("secrets/env"),
			Envvars: new(true), Splay: new(time.Duration(0)),
		},
		{
			EmbeddedTmpl: new(`{{ with nomadVar "nomad/jobs/db/group" }}{{ .level }}{{ end }}`), DestPath: new("secrets/conf"),
			ChangeMode: new("signal"), ChangeSignal: new("SIGHUP"), Splay: new(time.Duration(0)), Perms: new("0600"),
		},
	}
	_, _, err := c.Jobs().Register(job, nil)
	require.NoError(t, err)
	s := task(t, c, "db", "the event that says what is missing", func(s *api.TaskState) bool { return countOf(s, "Missing:") > 0 })
	require.Equal(t, 1, countOf(s, "Missing: nomad.var.block(nomad/jobs/db@default.global)"), told(s))
	require.Equal(t, "pending", s.State)

	variable(t, c, "nomad/jobs/db", map[string]string{"password": "one"})
	variable(t, c, "nomad/jobs/db/group", map[string]string{"level": "info"})
	seen(t, out, "started one info")

	variable(t, c, "nomad/jobs/db/group", map[string]string{"level": "debug"})
	seen(t, out, "started one info", "signalled debug")
	variable(t, c, "nomad/jobs/db", map[string]string{"password": "two"})
	seen(t, out, "started one info", "signalled debug", "started two debug")
	s = task(t, c, "db", "the restart", func(s *api.TaskState) bool { return s.State == "running" && s.Restarts == 1 })
	require.Equal(t, 1, countOf(s, "Template with change_mode restart re-rendered"))
	require.Equal(t, 1, countOf(s, "Template re-rendered"))

	// The same text again changes nothing; what follows it does.
	variable(t, c, "nomad/jobs/db", map[string]string{"password": "two", "other": "x"})
	variable(t, c, "nomad/jobs/db/group", map[string]string{"level": "warn"})
	seen(t, out, "started one info", "signalled debug", "started two debug", "signalled warn")
	s = task(t, c, "db", "no other restart", func(s *api.TaskState) bool { return s.State == "running" })
	require.Equal(t, uint64(1), s.Restarts)

	other := rawJob("thief", "batch", "/bin/true")
	other.TaskGroups[0].Tasks[0].Templates = []*api.Template{{
		EmbeddedTmpl: new(`{{ with nomadVar "nomad/jobs/db" }}{{ .password }}{{ end }}`), DestPath: new("local/x"),
	}}
	_, _, err = c.Jobs().Register(other, nil)
	require.NoError(t, err)
	task(t, c, "thief", "the refusal", func(s *api.TaskState) bool {
		return countOf(s, "nomad.var.block(nomad/jobs/db@default.global): Permission denied") > 0
	})
	_, _, err = c.Jobs().Deregister("db", false, nil)
	require.NoError(t, err)
	task(t, c, "db", "the end", func(s *api.TaskState) bool { return s.State == "dead" })
}
