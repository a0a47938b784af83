package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// artifactJob is a batch job that is tried once, with an artifact.
func artifactJob(id, source string) *api.Job {
	task := api.NewTask("main", "raw_exec").SetConfig("command", "/bin/cat").SetConfig("args", []string{"local/file"})
	task.Artifacts = []*api.TaskArtifact{{GetterSource: new(source)}}
	task.Resources = &api.Resources{CPU: new(1), MemoryMB: new(10)}
	task.RestartPolicy = &api.RestartPolicy{Attempts: new(0), Mode: new("fail")}
	j := api.NewBatchJob(id, id, "global", 50).AddTaskGroup(api.NewTaskGroup("g", 1).AddTask(task))
	j.TaskGroups[0].ReschedulePolicy = &api.ReschedulePolicy{Attempts: new(0), Unlimited: new(false)}
	return j
}

func messages(a *api.AllocationListStub) string {
	var said []string
	for _, e := range a.TaskStates["main"].Events {
		said = append(said, e.DisplayMessage)
	}
	return strings.Join(said, "\n")
}

func register(t *testing.T, c *api.Client, j *api.Job) {
	t.Helper()
	_, _, err := c.Jobs().Register(j, nil)
	require.NoError(t, err)
}

// evaluatorsOf has a letter for the state of each of an agent's evaluators: R computes, S waits.
func evaluatorsOf(agent int) (states string) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well-formed
	for _, path := range stats {
		text, _ := os.ReadFile(path) // it may have ended
		name, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		_, rest, _ := strings.Cut(string(text), ") ")
		var state string
		var parent int
		if _, err := fmt.Sscan(rest, &state, &parent); err == nil && parent == agent && strings.HasPrefix(string(name), "drover-evaluator") {
			states += state
		}
	}
	return states
}

// TestWhatUsersWriteIsContained: a template that asks for all memory fails its task. A job file that would compute for ever is
// let go with its sender. An artifact does not come from where only the agent can reach.
func TestWhatUsersWriteIsContained(t *testing.T) {
	t.Parallel()
	a := start(t, config(t, t.TempDir(), "server {\n  enabled = true\n}\n"+clientBlock("enabled = true"))...)
	c := a.nomad()
	greedy := artifactJob("greedy", "")
	task := greedy.TaskGroups[0].Tasks[0]
	task.Artifacts = nil
	task.Templates = []*api.Template{{
		EmbeddedTmpl: new(`{{ $a := "aaaaaaaaaaaaaaaa" }}{{ range $i := (split "" "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa") }}` +
			`{{ $a = printf "%s%s" $a $a }}{{ end }}{{ $a }}`),
		DestPath: new("local/file"),
	}}
	register(t, c, greedy)
	register(t, c, artifactJob("inner", "http://"+a.addr+"/v1/agent/self?filename=file"))
	require.Contains(t, messages(allocation(t, c, "greedy", "failed")), "it makes texts of more than")
	require.Contains(t, messages(allocation(t, c, "inner", "failed")),
		"127.0.0.1 is a loopback address, and client { artifact { allow = [...] } }")

	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	endless := "job \"x\" {\n  meta {\n    a = length([for i in range(1000) : bcrypt(\"x\", 12)])\n  }\n}\n"
	body, err := json.Marshal(map[string]string{"JobHCL": endless})
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+a.addr+"/v1/jobs/parse", bytes.NewReader(body))
	require.NoError(t, err)
	_, err = http.DefaultClient.Do(req)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	eventually(t, "the evaluator to end with its client", func() (bool, string) {
		states := evaluatorsOf(a.PID())
		return !strings.Contains(states, "R") && states != "", states
	})
	job, err := c.Jobs().ParseHCL("job \"x\" {\n  group \"g\" {\n    task \"t\" {\n      driver = \"raw_exec\"\n    }\n  }\n}\n", true)
	require.NoError(t, err)
	require.Equal(t, "x", *job.ID)
}

// TestAgentDiesTwiceWhilePreparing: the agent is killed while it downloads a task's artifact, twice. The third one fails
// the task, and runs what else there is; one that was stopped in between had done nothing wrong.
func TestAgentDiesTwiceWhilePreparing(t *testing.T) {
	t.Parallel()
	asked, release := make(chan struct{}, 100), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/file" {
			_, _ = w.Write([]byte("fine"))
			return
		}
		asked <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(release) })
	args := config(t, t.TempDir(), "server {\n  enabled = true\n}\n"+clientBlock("enabled = true\n  artifact {\n    allow = "+
		"[\"127.0.0.0/8\"]\n  }"))
	a := start(t, args...)
	register(t, a.nomad(), artifactJob("deadly", s.URL+"/never"))
	<-asked
	a.Stop()
	for range 2 {
		a = start(t, args...)
		<-asked
		a.PullThePlug()
	}
	a = start(t, args...)
	c := a.nomad()
	require.Contains(t, messages(allocation(t, c, "deadly", "failed")), "the node's agent died twice while this task was being prepared")
	require.Empty(t, asked, "it was not tried again")
	register(t, c, artifactJob("fine", s.URL+"/file"))
	allocation(t, c, "fine", "complete")
}
