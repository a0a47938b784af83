package alloc_test

import (
	"testing"

	"github.com/drover-project/drover/internal/cli/clitest"
)

// The allocations of world: one that runs two tasks, one that failed.
const (
	running = "3f2a0000-0000-0000-0000-000000000000"
	failed  = "3f9b0000-0000-0000-0000-000000000000"
)

func world() map[string]string {
	return map[string]string{
		"GET /v1/allocations": `[
			{"ID": "` + running + `", "Namespace": "default", "Name": "web.g[0]", "ClientStatus": "running", "DesiredStatus": "run",
				"CreateIndex": 4},
			{"ID": "` + failed + `", "Namespace": "default", "Name": "web.g[1]", "ClientStatus": "failed", "DesiredStatus": "stop", "CreateIndex": 3}
		]`,
		"GET /v1/allocation/" + running: `{"ID": "` + running + `", "Namespace": "default", "Name": "web.g[0]", "JobID": "web", "TaskGroup": "g",
			"NodeID": "91c30000-0000-0000-0000-000000000000", "NodeName": "n1", "ClientStatus": "running", "DesiredStatus": "run",
			"DeploymentStatus": {"Healthy": true}, "CreateTime": 1000000000,
			"Job": {"ID": "web", "Version": 2, "TaskGroups": [{"Name": "g", "Tasks": [{"Name": "server"}, {"Name": "proxy"}]}]},
			"AllocatedResources": {
				"Tasks": {"server": {"Cpu": {"CpuShares": 100}, "Memory": {"MemoryMB": 64, "MemoryMaxMB": 128}}},
				"Shared": {"Ports": [{"Label": "http", "HostIP": "10.0.0.1", "Value": 20000, "To": 80}, {"Label": "raw", "HostIP": "10.0.0.1",
					"Value": 9}]}
			},
			"Metrics": {"NodesEvaluated": 3, "NodesFiltered": 1, "ScoreMetaData": [{"NodeID": "n1", "NormScore": 0.5, "Scores": {"binpack": 0.25}}]},
			"TaskStates": {
				"server": {"State": "running", "Restarts": 2, "Events": [
					{"Type": "Started", "DisplayMessage": "it began", "Time": 1}, {"Type": "Restarting", "DisplayMessage": "again", "Time": 2}]},
				"proxy": {"State": "dead", "Failed": true}
			}}`,
		"GET /v1/allocation/" + failed: `{"ID": "` + failed + `", "Namespace": "default", "Name": "web.g[1]", "JobID": "web", "TaskGroup": "g",
			"ClientStatus": "failed", "ClientDescription": "it crashed", "Claim": {"RunnerID": "py-1", "ClaimedAt": 1000000000},
			"Job": {"ID": "web", "TaskGroups": [{"Name": "g", "Tasks": [{"Name": "server"}]}]}}`,
		"GET /v1/usage": `{"Allocations": {"` + running + `": {"ResourceUsage": {"CpuStats": {"TotalTicks": 42.4},
			"MemoryStats": {"RSS": 1048576}}}}}`,
		"GET /v1/client/allocation/" + running + "/stats": `{"Disk": {"Bytes": 2048, "Timestamp": 1000000000},
			"Tasks": {"server": {"ResourceUsage": {
			"CpuStats": {"Percent": 12.5, "TotalTicks": 50}, "MemoryStats": {"RSS": 1048576}}}}}`,
		"GET /v1/jobs":                 `[{"ID": "web", "Namespace": "default"}, {"ID": "none", "Namespace": "default"}]`,
		"GET /v1/job/web":              `{"ID": "web", "Namespace": "default"}`,
		"GET /v1/job/none":             `{"ID": "none", "Namespace": "default"}`,
		"GET /v1/job/none/allocations": `[]`,
		"GET /v1/job/web/allocations": `[
			{"ID": "` + failed + `", "Name": "web.g[1]", "ClientStatus": "failed", "CreateIndex": 9},
			{"ID": "` + running + `", "Name": "web.g[0]", "ClientStatus": "running", "CreateIndex": 4}
		]`,
	}
}

func TestAllocationsAreListed(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, world())
	api.Check(
		clitest.Case{Args: "alloc status", Out: []string{"ID Name Node Version", "3f2a0000 web.g[0] - 0 run running", "3f9b0000 web.g[1]"}},
		clitest.Case{Args: "alloc status -verbose", Out: []string{running}},
		clitest.Case{Args: "alloc status -json", Out: []string{`"ClientStatus": "failed"`}},
		clitest.Case{Args: "alloc status -t {{range.}}{{.Name}};{{end}}", Out: []string{"web.g[0];web.g[1];\n"}},
		clitest.Case{Args: "alloc status -namespace dev", Asks: []string{"GET /v1/allocations?namespace=dev"}},
	)
	api.Set("GET /v1/allocations", "[]")
	api.Check(clitest.Case{Args: "alloc status", Out: []string{"There are none."}})
	api.Set("GET /v1/allocations", "! 403 Permission denied")
	api.Check(clitest.Case{Args: "alloc status", Code: 1, Err: []string{"Permission denied; -token or DROVER_TOKEN (NOMAD_TOKEN) gives " +
		"another"}})
}

func TestAnAllocationIsShown(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, world())
	api.Check(
		clitest.Case{
			Args: "alloc status 3f2a", Out: []string{
				"ID = " + running, "Version = 2\n", "Node = 91c30000 (n1)\n", "Healthy = yes\n",
				"Label Address To\nhttp 10.0.0.1:20000 80\nraw 10.0.0.1:9 -\n",
				"Task \"proxy\" is dead (failed)\n", "Nothing happened yet.\n",
				"Task \"server\" is running\nCPU = 100 MHz\nMemory = 64.0 MiB, at most 128.0 MiB\n", "Restarts = 2\n", "Restarting again",
			},
			Not: []string{"Placement", "Runner"},
		},
		clitest.Case{Args: "alloc status -verbose 3f2a", Out: []string{"Placement\n", "Nodes evaluated = 3\n", "n1 0.500 binpack=0.250\n"}},
		clitest.Case{
			Args: "alloc status -stats 3f2a",
			Out:  []string{"Disk = 2.0 KiB\n", "CPU = 50 of 100 MHz (12.5 %)\n", "Memory = 1.0 MiB of 64.0 MiB, at most 128.0 MiB\n"},
		},
		// whoever ended uses nothing
		clitest.Case{Args: "alloc status -stats 3f9", Out: []string{"Description = it crashed\n", "Runner = py-1 since "}},
		clitest.Case{Args: "alloc status -t {{.ClientStatus}} 3f2a", Out: []string{"running\n"}},
		clitest.Case{Args: "alloc status -json 3f2a", Out: []string{`"TaskGroup": "g"`}},
	)
	api.Set("GET /v1/client/allocation/"+running+"/stats", "! 503 the node is away")
	api.Check(clitest.Case{Args: "alloc status -stats 3f2a", Code: 1, Err: []string{"reading what it uses: the node is away"}})
}

// TestAnAllocationIsFoundByTheBeginningOfItsID runs all commands with ids that are none, or two's.
func TestAnAllocationIsFoundByTheBeginningOfItsID(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, world())
	for _, command := range []string{"status %s", "logs %s", "fs %s", "stop %s", "restart %s", "signal %s", "exec %s true"} {
		before, after := command[:len(command)-2], ""
		if command == "exec %s true" {
			before, after = "exec ", " true"
		}
		api.Check(
			clitest.Case{Args: "alloc " + before + "99" + after, Code: 3, Err: []string{`there is no allocation "99"`}},
			clitest.Case{Args: "alloc " + before + "3f" + after, Code: 2, Err: []string{`2 allocations begin with "3f":`, "web.g[0] running"}},
		)
	}
	api.Set("GET /v1/allocations", "! 500 broken")
	api.Check(clitest.Case{Args: "alloc stop 3f2a", Code: 1, Err: []string{"broken"}})
}

func TestAnAllocationIsChanged(t *testing.T) {
	t.Parallel()
	answers := world()
	answers["PUT /v1/allocation/"+running+"/stop"] = `{"EvalID": "e1"}`
	for _, order := range []string{"restart", "signal"} {
		answers["PUT /v1/client/allocation/"+running+"/"+order] = `{}`
	}
	api := clitest.Serve(t, answers)
	path := "/v1/client/allocation/" + running
	api.Check(
		clitest.Case{
			Args: "alloc stop -detach -no-shutdown-delay 3f2a", Out: []string{"Evaluation ID: e1\n"},
			Asks: []string{"PUT /v1/allocation/" + running + "/stop?no_shutdown_delay=true"},
		},
		clitest.Case{Args: "alloc restart 3f2a", Asks: []string{path + `/restart {"AllTasks":false,"TaskName":""}`}},
		clitest.Case{Args: "alloc restart 3f2a server", Asks: []string{`"TaskName":"server"`}},
		clitest.Case{Args: "alloc restart -task proxy -all-tasks 3f2a", Asks: []string{`{"AllTasks":true,"TaskName":"proxy"}`}},
		clitest.Case{Args: "alloc signal 3f2a", Asks: []string{path + `/signal {"Signal":"SIGKILL","Task":""}`}},
		clitest.Case{Args: "alloc signal -s SIGHUP 3f2a server", Asks: []string{`{"Signal":"SIGHUP","Task":"server"}`}},
		clitest.Case{Args: "alloc signal", Code: 2, Err: []string{"0 arguments given"}},
	)
	api.Set("PUT "+path+"/signal", "! 400 no signal NOPE")
	api.Check(clitest.Case{Args: "alloc signal -s NOPE 3f2a", Code: 2, Err: []string{"no signal NOPE"}})
	api.Set("PUT /v1/allocation/"+running+"/stop", "! 500 broken")
	api.Check(clitest.Case{Args: "alloc stop 3f2a", Code: 1, Err: []string{"broken"}})
}

func TestLogs(t *testing.T) {
	t.Parallel()
	answers := world()
	answers["GET /v1/client/fs/logs/"+running] = "one\ntwo\nthree\n"
	api := clitest.Serve(t, answers)
	api.Check(
		clitest.Case{Args: "alloc logs 3f2a", Code: 2, Err: []string{`has 2 tasks: choose with -task: ["server" "proxy"]`}},
		clitest.Case{Args: "alloc logs -task nope 3f2a", Code: 3, Err: []string{`has no task "nope"; it has ["server" "proxy"]`}},
		clitest.Case{
			Args: "alloc logs 3f2a server", Out: []string{"one\ntwo\nthree\n"}, Err: []string{"one\ntwo\nthree\n"},
			Asks: []string{"follow=false&plain=true&task=server&type=stdout", "type=stderr"},
		},
		clitest.Case{Args: "alloc logs -stderr 3f2a server", Out: []string{"three"}, Asks: []string{"type=stderr"}},
		clitest.Case{Args: "alloc logs -stdout -tail -n 1 -job web server", Out: []string{"three\n"}, Not: []string{"two"}},
		clitest.Case{
			Args: "alloc logs -stdout -f -n 2 -job web -task server",
			Asks: []string{"follow=false", "follow=true&offset=10&origin=end"},
		},
		clitest.Case{Args: "alloc logs -stdout -c 6 3f2a server", Asks: []string{"offset=6&origin=end"}},
		clitest.Case{Args: "alloc logs -stdout -since 10m 3f2a server", Out: []string{"one\n"}, Asks: []string{"since=10m&task=server"}},
		clitest.Case{Args: "alloc logs -since 10m -n 3 3f2a server", Code: 2, Err: []string{"-since says where to begin"}},
		clitest.Case{Args: "alloc logs -stdout -search oNe 3f2a server", Out: []string{"one\n"}, Asks: []string{"search=oNe&task=server"}},
		clitest.Case{Args: "alloc logs -search one -tail 3f2a server", Code: 2, Err: []string{"-search looks at all of the log"}},
		clitest.Case{Args: "alloc logs -job none", Code: 3, Err: []string{`job "none" has no allocations`}},
		clitest.Case{Args: "alloc logs", Code: 2, Err: []string{"name an allocation, or a job with -job"}},
	)
	api.Set("GET /v1/client/fs/logs/"+running, "! 404 nothing was written")
	api.Check(clitest.Case{Args: "alloc logs 3f2a server", Code: 3, Err: []string{"nothing was written"}})
}

func TestFilesOfAnAllocation(t *testing.T) {
	t.Parallel()
	answers := world()
	answers["GET /v1/client/fs/stat/"+running] = `{"Name": "/", "IsDir": true, "FileMode": "drwxr-xr-x"}`
	answers["GET /v1/client/fs/ls/"+running] = `[{"Name": "alloc", "IsDir": true}, {"Name": "x", "Size": 2048, "FileMode": "-rw-r--r--"}]`
	answers["GET /v1/client/fs/cat/"+running] = "whole"
	answers["GET /v1/client/fs/stream/"+running] = "4\n5\n"
	api := clitest.Serve(t, answers)
	api.Check(
		clitest.Case{Args: "alloc fs 3f2a", Out: []string{"- 0 - alloc/\n", "-rw-r--r-- 2048 - x\n"}, Asks: []string{"/fs/stat/", "path=%2F"}},
		clitest.Case{Args: "alloc fs -H 3f2a alloc/", Out: []string{"2.0 KiB"}, Asks: []string{"path=alloc%2F"}},
		clitest.Case{Args: "alloc fs -stat 3f2a", Out: []string{"drwxr-xr-x 0 - //\n"}},
		clitest.Case{Args: "alloc fs -stat -json -job web", Out: []string{`"IsDir": true`}},
		clitest.Case{Args: "alloc fs -json 3f2a", Out: []string{`"Name": "x"`}},
	)
	api.Set("GET /v1/client/fs/ls/"+running, "[]")
	api.Check(clitest.Case{Args: "alloc fs 3f2a", Out: []string{"The folder is empty."}})
	api.Set("GET /v1/client/fs/stat/"+running, `{"Name": "x", "Size": 4}`)
	api.Check(
		clitest.Case{Args: "alloc fs 3f2a x", Out: []string{"whole"}, Asks: []string{"/fs/cat/"}},
		clitest.Case{Args: "alloc fs -tail -n 1 3f2a x", Out: []string{"5\n"}, Not: []string{"4"}},
		clitest.Case{Args: "alloc fs -c 100 3f2a x", Asks: []string{"offset=4&origin=end"}},
		clitest.Case{Args: "alloc fs -f 3f2a x", Asks: []string{"/fs/stream/"}},
	)
	api.Set("GET /v1/client/fs/cat/"+running, "! 403 it is secret")
	api.Check(clitest.Case{Args: "alloc fs 3f2a x", Code: 1, Err: []string{"printing the file: it is secret"}})
	api.Set("GET /v1/client/fs/stat/"+running, "! 404 no such path")
	api.Check(clitest.Case{Args: "alloc fs 3f2a x", Code: 3, Err: []string{"no such path"}})
}
