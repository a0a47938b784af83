package drover

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFaultsOfATask(t *testing.T) {
	t.Parallel()
	refused(t, JobTypeService, ofTask, []fault{
		{`{"Name": ""}`, "job.group[g].task[0].Name: must be set"},
		{`{"Name": "alloc"}`, `job.group[g].task[alloc].Name: must be usable as a folder and not be "alloc"`},
		{`{"Name": "a/b"}`, "job.group[g].task[a/b].Name: must be usable as a folder"},
		{`{"Name": ".."}`, "job.group[g].task[..].Name: must be usable as a folder"},
		{`{"Driver": ""}`, "job.group[g].task[t].Driver: must be set"},
		{`{"KillTimeout": -1}`, "job.group[g].task[t].KillTimeout: must not be negative"},
		{`{"ShutdownDelay": -1}`, "job.group[g].task[t].ShutdownDelay: must not be negative"},
		{`{"Lifecycle": {"Hook": "midstart"}}`, `job.group[g].task[t].Lifecycle.Hook: must be prestart, poststart or poststop, got "midstart"`},
		{`{"Lifecycle": {"Hook": "prestart"}}`, "job.group[g]: needs a task without lifecycle"},
		{`{"Lifecycle": {"Hook": "prestart"}, "Leader": true}`, "job.group[g].task[t].Leader: a task with lifecycle can't be the leader"},
		{`{"Env": {"A=B": "x"}}`, `job.group[g].task[t].Env: "A=B" is no name for a variable`},
		{`{"Env": {"": "x"}}`, `job.group[g].task[t].Env: "" is no name for a variable`},
		{`{"Env": {"A": "${B}", "B": "${env[\"A\"]}"}}`, "job.group[g].task[t].Env: the variables A, B need each other"},
		{`{"Actions": [null]}`, "job.group[g].task[t].Actions[0]: must not be null"},
		{`{"Actions": [{"Name": "a b", "Command": "x"}]}`, "job.group[g].task[t].Actions[0].Name: must be 1 to 128 printable"},
		{`{"Actions": [{"Name": "", "Command": "x"}]}`, "job.group[g].task[t].Actions[0].Name: must be 1 to 128 printable"},
		{`{"Actions": [{"Name": "a\u001b[2J", "Command": "x"}]}`, "job.group[g].task[t].Actions[0].Name: must be 1 to 128 printable"},
		{`{"Actions": [{"Name": "a\u00a0b", "Command": "x"}]}`, "job.group[g].task[t].Actions[0].Name: must be 1 to 128 printable"},
		{`{"Actions": [{"Name": "a"}]}`, "job.group[g].task[t].Actions[0].Command: must be set"},
		{
			`{"Actions": [{"Name": "a", "Command": "x"}, {"Name": "a", "Command": "y"}]}`,
			`job.group[g].task[t].Actions[1].Name: "a" is the name of another action`,
		},
		{`{"LogConfig": {"MaxFiles": 0}}`, "job.group[g].task[t].LogConfig.MaxFiles: must be from 1 to 32768, got 0"},
		{`{"LogConfig": {"MaxFiles": 4611686018427387904}}`, "job.group[g].task[t].LogConfig.MaxFiles: must be from 1 to 32768"},
		{`{"LogConfig": {"MaxFileSizeMB": 0}}`, "job.group[g].task[t].LogConfig.MaxFileSizeMB: must be from 1 to 32768, got 0"},
		{`{"LogConfig": {"MaxFiles": 100}}`, "job.group[g].task[t].LogConfig: 100 files of 10 MB may take more than the ephemeral disk's 300 MB"},
	})
	j := valid()
	group := j.TaskGroups[0]
	group.Tasks = append(group.Tasks, new(*group.Tasks[0]))
	require.ErrorContains(t, j.Validate(), `job.group[g]: task "t" is defined twice`)
	group.Tasks[0].Leader, group.Tasks[1].Leader = true, true
	require.ErrorContains(t, j.Validate(), "job.group[g]: only one task can be the leader, 2 are")
	j = valid()
	require.NoError(t, json.Unmarshal([]byte(`{"LogConfig": {"MaxFiles": 100, "Disabled": true}}`), ofTask(j)))
	require.NoError(t, j.Validate(), "logs that are not kept take no room")
}

func TestFaultsOfResources(t *testing.T) {
	t.Parallel()
	refused(t, JobTypeService, ofTask, []fault{
		{`{"Resources": {"Cores": -1}}`, ".Resources.Cores: must not be negative, got -1"},
		{`{"Resources": {"CPU": 0}}`, ".Resources.CPU: must be at least 1, got 0"},
		{`{"Resources": {"MemoryMB": 9}}`, ".Resources.MemoryMB: must be at least 10, got 9"},
		{`{"Resources": {"MemoryMaxMB": 100}}`, ".Resources.MemoryMaxMB: must be -1, 0 or at least MemoryMB (300), got 100"},
		{`{"Resources": {"MemoryMaxMB": 1099511627776}}`, ".Resources: is too large"},
		{`{"Resources": {"DiskMB": -1}}`, ".Resources.DiskMB: must not be negative"},
		{`{"Resources": {"SecretsMB": -1}}`, ".Resources.SecretsMB: must not be negative"},
		{`{"Resources": {"Devices": [null]}}`, ".Resources.Devices: a device has no name"},
		{`{"Resources": {"Devices": [{"Name": "gpu", "Count": 0}]}}`, ".Resources.Devices: a device's Count must be at least 1"},
		{`{"Resources": {"Networks": [{"Mode": "x"}]}}`, ".Resources.Networks.Mode: must be host, bridge, none or cni/NAME"},
	})
	for _, fine := range []string{`{"CPU": 0, "Cores": 2}`, `{"MemoryMaxMB": -1}`, `{"MemoryMaxMB": 300}`} {
		j := valid()
		require.NoError(t, json.Unmarshal([]byte(`{"Resources": `+fine+`}`), ofTask(j)))
		require.NoError(t, j.Validate(), fine)
	}
}

func TestFaultsOfFilesThatATaskGets(t *testing.T) {
	t.Parallel()
	template := func(rest string) string {
		return fmt.Sprintf(`{"Templates": [{"EmbeddedTmpl": "x", "DestPath": "local/x", "ChangeMode": "noop"%s}]}`, rest)
	}
	artifact := func(rest string) string {
		return fmt.Sprintf(`{"Artifacts": [{"GetterSource": "http://x", "GetterMode": "any"%s}]}`, rest)
	}
	refused(t, JobTypeService, ofTask, []fault{
		{`{"DispatchPayload": {}}`, ".DispatchPayload.File: must be a path inside the task's folder"},
		{`{"DispatchPayload": {"File": "../x"}}`, ".DispatchPayload.File: must be a path inside the task's folder"},
		{`{"Artifacts": [null]}`, ".Artifacts[0]: must not be null"},
		{artifact(`, "GetterSource": ""`), ".Artifacts[0].GetterSource: must be set"},
		{artifact(`, "RelativeDest": "../../etc"`), ".Artifacts[0].RelativeDest: must not leave the allocation's folder"},
		{artifact(`, "GetterMode": "git"`), ".Artifacts[0].GetterMode: must be any, file or dir"},
		{`{"Templates": [null]}`, ".Templates[0]: must not be null"},
		{template(`, "SourcePath": "y"`), ".Templates[0]: needs either SourcePath or EmbeddedTmpl"},
		{template(`, "DestPath": ""`), ".Templates[0].DestPath: must be set"},
		{template(`, "DestPath": "a/../../../b"`), ".Templates[0].DestPath: must not leave the allocation's folder"},
		{template(`, "ChangeMode": "signal"`), ".Templates[0].ChangeSignal: must be set for change_mode signal"},
		{template(`, "ChangeMode": "pray"`), ".Templates[0].ChangeMode: must be restart, signal, noop or script"},
		{template(`, "ChangeMode": "script"`), ".Templates[0].ChangeScript.Command: must be set"},
		{template(`, "Perms": "rw"`), ".Templates[0].Perms: must be octal such as 0644"},
		{template(`, "Splay": -1`), ".Templates[0].Splay: must not be negative"},
		{template(`, "Wait": {"Min": 2, "Max": 1}`), ".Templates[0].Wait: Min 2ns is above Max 1ns"},
	})
}
