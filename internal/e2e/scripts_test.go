package e2e

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// scripted is a job of one task that waits. Its template is the variable's item `what`; when that changes, a script in the task says so in
// a file, and then hangs or fails if the item asks for that.
func scripted(id, out string, fails bool) *api.Job {
	job := rawJob(id, "service", "/bin/sh", "-c", "while :; do sleep 0.05; done")
	job.TaskGroups[0].Tasks[0].Templates = []*api.Template{{
		EmbeddedTmpl: new(`{{ with nomadVar "nomad/jobs" }}{{ .what }}{{ end }}`), DestPath: new("secrets/what"), Splay: new(time.Duration(0)),
		ChangeMode: new("script"), ChangeScript: &api.ChangeScript{
			Command: new("/bin/sh"), Args: []string{"-c", `what=$(cat $NOMAD_SECRETS_DIR/what); echo $NOMAD_JOB_NAME $what >> ` + out +
				`; case $what in hang) sleep 600;; bad) echo no such thing; exit 3;; esac`},
			Timeout: new(time.Second), FailOnError: new(fails),
		},
	}}
	return job
}

// A changed template tells its task by a script that runs in it: with its environment, bounded in time, and its end in the task's events.
// It fails the task only if it shall.
func TestATemplateRunsItsScript(t *testing.T) {
	t.Parallel()
	c := dev(t).nomad()
	calm, strict := filepath.Join(t.TempDir(), "calm"), filepath.Join(t.TempDir(), "strict")
	set := func(what string) { variable(t, c, "nomad/jobs", map[string]string{"what": what}) }
	set("one")
	running := func(s *api.TaskState) bool { return s.State == "running" }
	for _, job := range []*api.Job{scripted("calm", calm, false), scripted("strict", strict, true)} {
		_, _, err := c.Jobs().Register(job, nil)
		require.NoError(t, err)
		task(t, c, *job.ID, "a running task", running)
	}

	set("two")
	seen(t, calm, "calm two")
	seen(t, strict, "strict two")
	for _, job := range []string{"calm", "strict"} {
		task(t, c, job, "the event of the script", func(s *api.TaskState) bool { return countOf(s, "on change. Exit code: 0") == 1 })
	}

	set("hang")
	seen(t, calm, "calm two", "calm hang")
	s := task(t, c, "calm", "the event of the script that hung", func(s *api.TaskState) bool {
		return countOf(s, "the script took longer than 1s and was killed") == 1
	})
	require.Equal(t, "running", s.State)
	s = task(t, c, "strict", "the failure of the task whose script hung", func(s *api.TaskState) bool { return s.State == "dead" })
	require.True(t, s.Failed)
	require.Positive(t, countOf(s, "the script took longer than 1s and was killed"), told(s)) // why it was killed, and that it was

	set("bad")
	seen(t, calm, "calm two", "calm hang", "calm bad")
	s = task(t, c, "calm", "the event of the script that failed", func(s *api.TaskState) bool {
		return countOf(s, "on change. Exit code: 3: no such thing") == 1
	})
	require.Equal(t, "running", s.State)
	require.Zero(t, s.Restarts)
	seen(t, strict, "strict two", "strict hang")
}
