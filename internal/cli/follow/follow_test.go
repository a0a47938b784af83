package follow_test

import (
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/cli/clitest"
)

// placed is what an agent answers of an evaluation e1 of the job web, all of which could be placed.
func placed(kind string) map[string]string {
	return map[string]string{
		"GET /v1/jobs":     `[{"ID": "web", "Namespace": "default"}]`,
		"GET /v1/job/web":  `{"ID": "web", "Namespace": "default", "TaskGroups": [{"Name": "g"}]}`,
		"PUT /v1/jobs":     `{"EvalID": "e1"}`,
		"GET /v1/job/none": "! 404 no such job",
		"GET /v1/evaluation/e1": `{"ID": "e1", "JobID": "web", "Namespace": "default", "Type": "` + kind + `", "Status": "complete",
			"TriggeredBy": "job-register"}`,
		"PUT /v1/job/web/evaluate":   `{"EvalID": "e1"}`,
		"GET /v1/job/web/deployment": "null",
		"GET /v1/job/web/allocations": `[{"ID": "a1", "EvalID": "e1", "Name": "web.g[0]", "NodeName": "n1", "ClientStatus": "running",
			"DesiredStatus": "run"}]`,
	}
}

func TestAnEvaluationIsFollowedUntilItsAllocationsRun(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, placed("service"))
	api.Set("GET /v1/evaluation/e1", `{"ID": "e1", "JobID": "web", "Namespace": "default", "Type": "service", "Status": "pending",
		"TriggeredBy": "job-register"}
---
{"ID": "e1", "JobID": "web", "Namespace": "default", "Type": "service", "Status": "complete", "DeploymentID": "d1"}`)
	api.Set("GET /v1/job/web/allocations", `[
	{"ID": "a1", "EvalID": "e1", "Name": "web.g[0]", "NodeName": "n1", "ClientStatus": "pending", "DesiredStatus": "run"},
	{"ID": "old", "EvalID": "e0", "Name": "web.g[1]", "ClientStatus": "pending", "DesiredStatus": "run"}]
---
[{"ID": "a1", "EvalID": "e1", "Name": "web.g[0]", "NodeName": "n1", "ClientStatus": "running", "DesiredStatus": "run"}]`)
	api.Check(clitest.Case{
		Args: "job eval web",
		Out: []string{
			"==> Evaluation e1 of job \"web\" (job-register)\n    Allocation a1 (web.g[0]) on node n1: pending\n    Allocation a1 (web.g[0]) on " +
				"node n1: running\n" +
				"==> Evaluation e1 is complete\n    Deployment d1 goes on: 'drover deployment status d1'\n",
		},
		Not:  []string{"old"},
		Asks: []string{"/v1/evaluation/e1?index=0", "/v1/evaluation/e1?index=7", "/allocations?index=0&namespace=default&wait=60s", "index=7"},
	})
}

// TestWhatFailsAtOnceIsTold: who registers a job that cannot start shall not have to look for the reason.
func TestWhatFailsAtOnceIsTold(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, placed("service"))
	api.Set("GET /v1/job/web/allocations", `[
		{"ID": "a1", "EvalID": "e1", "Name": "web.g[0]", "NodeName": "n1", "ClientStatus": "failed", "DesiredStatus": "run", "TaskStates": {
			"t": {"Events": [{"Type": "Driver Failure", "DisplayMessage": "no such\nprogram"}, {"Type": "Not Restarting",
				"DisplayMessage": "it gave up"}]},
			"u": {"Events": [{"Type": "Received", "DisplayMessage": "fine"}]}}},
		{"ID": "a2", "EvalID": "e1", "Name": "web.g[1]", "ClientStatus": "running", "DesiredStatus": "run"}]`)
	api.Check(clitest.Case{
		Args: "job eval web", Code: 1, Out: []string{"task t: Driver Failure: no such program\n"}, Not: []string{"it gave up", "task u"},
		Err: []string{"1 of 2 allocations failed: 'drover alloc status ID' and 'drover alloc logs ID' tell more"},
	})
}

func TestAnEvaluationThatDoesNotPlace(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, placed("service"))
	api.Set("GET /v1/job/web/allocations", "[]")
	for answer, want := range map[string]clitest.Case{
		`{"ID": "e1", "JobID": "web", "Status": "failed", "StatusDescription": "maximum attempts"}`: {
			Code: 1,
			Err:  []string{"the evaluation is failed: maximum attempts"},
		},
		`{"ID": "e1", "JobID": "web", "Status": "canceled"}`: {
			Code: 1,
			Err:  []string{"the evaluation is canceled"},
		},
		`{"ID": "e1", "JobID": "web", "Status": "complete", "BlockedEval": "e2", "FailedTGAllocs": {"g": {"NodesEvaluated": 1,
			"CoalescedFailures": 2}}}`: {
			Code: 4, Out: []string{
				"==> Not everything could be placed:", `Group "g": 3 allocations not placed`,
				"Evaluation e2 waits for room to place the rest.",
			},
		},
		`{"ID": "e1", "JobID": "web", "Status": "blocked", "FailedTGAllocs": {"g": {}}}`: {
			Code: 4, Out: []string{"no node was eligible"},
			Not: []string{"waits for room"},
		},
		"! 404 no such evaluation":                            {Code: 3, Err: []string{"no such evaluation"}},
		`{"ID": "e1", "Type": "_core", "Status": "complete"}`: {Not: []string{"Allocation"}},
	} {
		api.Set("GET /v1/evaluation/e1", answer)
		want.Args = "job eval web"
		api.Check(want)
	}
	api.Set("GET /v1/evaluation/e1", `{"ID": "e1", "JobID": "web", "Status": "complete"}`)
	api.Set("GET /v1/job/web/allocations", "! 500 broken")
	api.Check(clitest.Case{Args: "job eval web", Code: 1, Err: []string{"broken"}})
}

// TestWaitingForBatchWork ends when all that runs has ended, also what an earlier evaluation placed.
func TestWaitingForBatchWork(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, placed("batch"))
	api.Stdin = `{"ID": "web", "Type": "batch"}`
	api.Set("GET /v1/job/web/allocations", `[{"ID": "a0", "EvalID": "e0", "Name": "web.g[0]", "ClientStatus": "running",
		"DesiredStatus": "run"}]
---
[{"ID": "a0", "EvalID": "e0", "Name": "web.g[0]", "ClientStatus": "complete", "DesiredStatus": "run"}]`)
	api.Check(clitest.Case{Args: "job run -wait -", Out: []string{
		"Allocation a0 (web.g[0]) on node : running\n", ": complete\n",
		"Evaluation e1 is complete",
	}})
	api.Set("GET /v1/job/web/allocations", `[{"ID": "a1", "EvalID": "e1", "ClientStatus": "failed"}]`)
	api.Check(clitest.Case{Args: "job run -wait -", Code: 1, Err: []string{"1 of 1 allocations failed"}})
}

// A job is registered before there is a node. Who waits for its end waits for room, and is told what is in the way. So it is
// when that changes, when another evaluation does the work of the one that waited, and when there is none.
func TestWaitingForRoom(t *testing.T) {
	t.Parallel()
	const first = `{"ID": "e1", "JobID": "web", "Namespace": "default", "Type": "batch", "Status": "complete", "BlockedEval": "e2",
		"CreateIndex": 1, "FailedTGAllocs": {"g": {}}}`
	const blocked = `{"ID": "e2", "JobID": "web", "Status": "blocked", "CreateIndex": 2, "FailedTGAllocs": {"g": {}}}`
	const full = `{"ID": "e2", "JobID": "web", "Status": "blocked", "CreateIndex": 2, "FailedTGAllocs": {"g": {"NodesEvaluated": 1,
		"NodesExhausted": 1, "DimensionExhausted": {"memory": 1}}}}`
	const placed2 = `{"ID": "e2", "JobID": "web", "Namespace": "default", "Type": "batch", "Status": "complete", "CreateIndex": 2}`
	const done = `[{"ID": "a1", "EvalID": "e2", "Name": "web.g[0]", "ClientStatus": "complete", "DesiredStatus": "run"}]`
	serve := func(second, all string) *clitest.API {
		api := clitest.Serve(t, placed("batch"))
		api.Stdin = `{"ID": "web", "Type": "batch"}`
		api.Set("GET /v1/evaluation/e1", first)
		api.Set("GET /v1/evaluation/e2", second)
		api.Set("GET /v1/job/web/evaluations", all)
		api.Set("GET /v1/job/web/allocations", done)
		return api
	}
	serve(blocked+"\n---\n"+blocked+"\n---\n"+full+"\n---\n"+placed2, "[]").Check(clitest.Case{Args: "job run -wait -", Out: []string{
		"Not everything could be placed:\n", "Waiting for room for 5m0s at most.\n", "Still not everything can be placed:\n", "memory",
		"==> There is room now.\n    Allocation a1 (web.g[0]) on node : complete\n==> Evaluation e2 is complete\n",
	}})
	canceled := strings.Replace(blocked, "blocked", "canceled", 1)
	other := strings.ReplaceAll(placed2, "e2", "e3")
	api := serve(canceled, "["+first+","+canceled+","+other+"]")
	api.Set("GET /v1/evaluation/e3", other)
	api.Check(clitest.Case{Args: "job run -wait -", Out: []string{"There is room now.", "Evaluation e3 is complete"}})
	serve(canceled, "["+first+","+canceled+"]").Check(clitest.Case{Args: "job run -wait -", Code: 4, Not: []string{"Waiting for room"}})
	unfit := strings.Replace(first, `"BlockedEval": "e2",`, "", 1) // one entry of the log has two: neither comes after the other
	beside := strings.Replace(unfit, "e1", "e3", 1)
	api = serve(blocked, "["+unfit+","+beside+"]")
	api.Set("GET /v1/evaluation/e1", unfit)
	api.Set("GET /v1/evaluation/e3", beside)
	api.Check(clitest.Case{Args: "job run -wait -", Code: 4})
	api = serve(blocked+"\n---\n"+canceled, "["+first+","+canceled+"]")
	api.Check(clitest.Case{
		Args: "job run -wait -", Code: 1, Err: []string{"the evaluation that waited for room was canceled: 'drover job status web'"},
	})
	failed := strings.Replace(placed2, `"complete"`, `"failed", "StatusDescription": "maximum attempts"`, 1)
	serve(blocked+"\n---\n"+failed, "[]").Check(clitest.Case{Args: "job run -wait -", Code: 1, Err: []string{"is failed: maximum attempts"}})
	serve(blocked+"\n---\n! 500 broken", "[]").Check(clitest.Case{Args: "job run -wait -", Code: 1, Err: []string{"broken"}})
	serve(blocked, "[]").Check(clitest.Case{Args: "job run -wait -place-within 0s -", Code: 4, Not: []string{"Waiting for room"}})
	serve(blocked, "[]").Check(clitest.Case{
		Args: "job run -wait -place-within 20ms -", Code: 4, Out: []string{"==> There was no room within 20ms; the job goes on waiting.\n"},
	})
}

// TestWaitingForADeployment follows the job's newest one to its end, unless that ended before.
func TestWaitingForADeployment(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, placed("service"))
	api.Stdin = `{"ID": "web"}`
	api.Set("GET /v1/job/web/deployment", `{"ID": "d1", "Status": "running", "Namespace": "default"}`)
	group := `"TaskGroups": {"g": {"DesiredTotal": 2, "PlacedAllocs": 2, "HealthyAllocs": 1}}`
	api.Set("GET /v1/deployment/d1", `{"ID": "d1", "Status": "running", `+group+`}
---
{"ID": "d1", "Status": "successful", "StatusDescription": "Deployment completed successfully", `+group+`}`)
	api.Check(clitest.Case{
		Args: "job run -wait -", Out: []string{
			"    g: 2 of 2 placed, 1 healthy, 0 unhealthy\n", "==> Deployment d1 is successful: Deployment completed successfully\n",
		},
		Not: []string{"goes on"},
	})
	api.Set("GET /v1/deployment/d1", `{"ID": "d1", "Status": "failed", "StatusDescription": "too slow"}`)
	api.Check(clitest.Case{Args: "job run -wait -", Code: 1, Out: []string{"==> Deployment d1 is failed: too slow"}})
	api.Set("GET /v1/deployment/d1", "! 500 broken")
	api.Check(clitest.Case{Args: "job run -wait -", Code: 1, Err: []string{"broken"}})
	api.Set("GET /v1/job/web/deployment", `{"ID": "d0", "Status": "failed"}`)
	api.Check(clitest.Case{Args: "job run -wait -", Out: []string{"Evaluation e1 is complete"}})
	api.Set("GET /v1/job/web/deployment", "! 500 broken")
	api.Check(clitest.Case{Args: "job run -wait -", Code: 1, Err: []string{"broken"}})
}

// TestADeploymentThatWaitsForSomebodySaysSo: who follows it would else wait for ever. Nothing is told twice.
func TestADeploymentThatWaitsForSomebodySaysSo(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, placed("service"))
	api.Stdin = `{"ID": "web"}`
	api.Set("GET /v1/job/web/deployment", `{"ID": "d1", "Status": "running", "Namespace": "default"}`)
	step := func(status, group string) string {
		return `{"ID": "d1", "JobID": "web", "Status": "` + status + `", "StatusDescription": "done",
			"TaskGroups": {"g": {"DesiredTotal": 2, "DesiredCanaries": 1, "PlacedCanaries": ["a"], "PlacedAllocs": 1, ` + group + `}}}`
	}
	api.Set("GET /v1/deployment/d1", strings.Join([]string{
		step("running", `"HealthyAllocs": 0`), step("running", `"HealthyAllocs": 1`), step("running", `"HealthyAllocs": 1`),
		step("paused", `"HealthyAllocs": 1`), step("running", `"HealthyAllocs": 1, "Promoted": true`),
		step("successful", `"HealthyAllocs": 2, "Promoted": true`),
	}, "\n---\n"))
	api.Check(clitest.Case{Args: "job run -wait -", Out: []string{
		"    g: 1 of 2 placed, 0 healthy, 0 unhealthy, 1 of 1 canary placed\n" +
			"    g: 1 of 2 placed, 1 healthy, 0 unhealthy, 1 of 1 canary placed\n" +
			"==> Deployment d1 has healthy canaries: 'drover job promote web' lets them replace the old version\n" +
			"==> Deployment d1 is paused: 'drover deployment resume d1' lets it go on\n" +
			"    g: 1 of 2 placed, 1 healthy, 0 unhealthy, promoted\n==> Deployment d1 goes on\n" +
			"    g: 1 of 2 placed, 2 healthy, 0 unhealthy, promoted\n==> Deployment d1 is successful: done\n",
	}})
}

// TestProgressOfATasksStartIsTold: an image may take minutes, in which nothing else changes.
func TestProgressOfATasksStartIsTold(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, placed("service"))
	step := func(status, state, kind, message string) string {
		return `[{"ID": "a1", "EvalID": "e1", "Name": "web.g[0]", "ClientStatus": "` + status + `", "DesiredStatus": "run", "TaskStates": {
			"t": {"State": "` + state + `", "Events": [{"Type": "Received"}, {"Type": "` + kind + `", "DisplayMessage": "` + message + `"}]}}}]`
	}
	api.Set("GET /v1/job/web/allocations", strings.Join([]string{
		step("pending", "pending", "Received", "no news"), step("pending", "pending", "Driver", "Downloading image x: 1 MB of 9 MB"),
		step("pending", "pending", "Driver", "Downloading image x: 1 MB of 9 MB"),
		step("pending", "pending", "Driver", "Downloading image x: 8 MB\\nof 9 MB"), step("running", "running", "Driver", "it runs"),
	}, "\n---\n"))
	api.Check(clitest.Case{
		Args: "job eval web", Out: []string{"pending\n" +
			"      task t: Downloading image x: 1 MB of 9 MB\n      task t: Downloading image x: 8 MB of 9 MB\n" +
			"    Allocation a1 (web.g[0]) on node : running\n"},
		Not: []string{"no news", "it runs"},
	})
}

// TestADriverThatNoNodeHas is not waited for, nor is the deployment, unless the fleet may bring a node that has it.
func TestADriverThatNoNodeHas(t *testing.T) {
	t.Parallel()
	api := clitest.Serve(t, placed("service"))
	api.Stdin = `{"ID": "web"}`
	api.Set("GET /v1/evaluation/e1", `{"ID": "e1", "JobID": "web", "Namespace": "default", "Type": "service", "Status": "complete",
		"FailedTGAllocs": {"g": {"NodesEvaluated": 1, "NodesFiltered": 1, "ConstraintFiltered": {"missing drivers: docker (no daemon)": 1}}}}`)
	api.Set("GET /v1/job/web/deployment", `{"ID": "d1", "Status": "running", "Namespace": "default"}`)
	api.Set("GET /v1/deployment/d1", `{"ID": "d1", "Status": "successful", "StatusDescription": "it came"}`)
	api.Set("GET /v1/nodes", `[{"Status": "ready", "Drivers": {"exec": {"Detected": true, "Healthy": true}, "docker": {}}}]`)
	api.Set("GET /v1/fleet/pools", "[]")
	api.Set("GET /v1/fleet/waiting", "[]")
	api.Set("GET /v1/job/web", `{"ID": "web", "Namespace": "default", "NodePool": "default"}`)
	api.Check(clitest.Case{
		Args: "job run -wait -", Code: 4,
		Out: []string{
			`==> Waiting does not help group "g": no node has the driver docker, and no pool of the fleet brings one that does; there are exec.`,
		},
		Not: []string{"d1"},
	})
	api.Set("GET /v1/nodes", `[{"Status": "ready", "Drivers": {"docker": {"Detected": true}}}]`) // its daemon restarts, it may be
	api.Check(clitest.Case{Args: "job run -wait -", Out: []string{"==> Deployment d1 is successful: it came\n"}})
}
